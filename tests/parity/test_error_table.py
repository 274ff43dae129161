"""Each refused condition is refused by both codecs, at random valid surroundings, and ours names the field."""

# ruff: noqa: PT017, PT018

from __future__ import annotations

import collections
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.parity.conversations import text
from tests.parity.converted import conversion
from tests.parity.error_rows import CHAT, MESSAGES, RESPONSES, ROWS, Row
from tests.parity.request_pieces import MODELS
from tests.parity.test_convert import options_of

official = pytest.importorskip("deepseek_recipe", reason="the official codec is not installed: pip install .[parity]")
recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

pytestmark = pytest.mark.parity

CASES_PER_ROW = 20
V41 = MODELS[1]


def valid_body(request_class: str, rng: random.Random) -> dict[str, Any]:
    """A body that both codecs accept, with text that neither looks into."""
    said = text(rng).replace("json", "")
    body: dict[str, Any] = {"model": V41, "temperature": rng.choice([0.5, 1]), "user": "u"}
    if request_class == RESPONSES:
        return {**body, "input": said, "store": rng.random() < 0.5}
    if request_class == MESSAGES:
        body = {**body, "max_tokens": rng.randrange(1, 100)}
    return {**body, "messages": [{"role": "user", "content": said}]}


@pytest.mark.parametrize("request_class", [CHAT, RESPONSES, MESSAGES])
def test_the_surroundings_are_valid(request_class: str) -> None:
    for seed in range(CASES_PER_ROW):
        body = valid_body(request_class, random.Random(seed))
        assert conversion(recipe_rs, request_class, body, recipe_rs.ConversionOptions()).is_accepted


def check_row(row: Row, counts: collections.Counter[str]) -> None:
    options = dict(row.options)
    for seed in range(CASES_PER_ROW):
        body = row.body(valid_body(row.request_class, random.Random(seed)))
        theirs = conversion(official, row.request_class, body, options_of(official, options))
        ours = conversion(recipe_rs, row.request_class, body, options_of(recipe_rs, options))
        assert not theirs.is_accepted, f"{row.name}: the official codec accepts {json.dumps(body)}"
        assert not ours.is_accepted, f"{row.name}: we accept {json.dumps(body)}"
        for named in row.named:
            assert named in ours.detail, f"{row.name}: {ours.detail!r} does not name {named!r}"
        counts[row.name] += 1


def test_each_row_is_refused_and_named(coverage_table: Callable[[str, Mapping[str, int]], None]) -> None:
    names = [row.name for row in ROWS]
    doubled = [name for name, count in collections.Counter(names).items() if count > 1]
    assert not doubled, f"rows with one name: {doubled}"
    counts: collections.Counter[str] = collections.Counter()
    for row in ROWS:
        check_row(row, counts)
    coverage_table(f"{len(counts)} conditions of refusal", counts)
    assert min(counts.values()) >= CASES_PER_ROW and len(counts) == len(ROWS)


@pytest.mark.parametrize("body", [b"{", b'{"a": 1', b"{} x", b"\xff", b'{"a": ' + b"[" * 128 + b"]" * 128 + b"}"])
@pytest.mark.parametrize("request_class", [CHAT, RESPONSES, MESSAGES])
def test_syntax_errors_tell_line_and_column(request_class: str, body: bytes) -> None:
    with pytest.raises(ValueError, match="line 1 column"):
        getattr(recipe_rs, request_class)(body)
    with pytest.raises(ValueError, match="line 1 column"):
        getattr(official, request_class)(body)


@pytest.mark.parametrize("request_class", [CHAT, RESPONSES, MESSAGES])
def test_f23_one_class_for_both_stages(request_class: str) -> None:
    try:
        getattr(recipe_rs, request_class)({"model": 3})
    except recipe_rs.ConversionError as error:
        assert isinstance(error, ValueError)
        assert error.status_code == 400 and error.param == "model"
        assert json.loads(error.body)["error"]["param"] == "model"
        anthropic = json.loads(error.anthropic_body)
        assert anthropic["type"] == "error" and anthropic["error"]["type"] == "invalid_request_error"
    else:
        pytest.fail("a model of a wrong type was accepted")


@pytest.mark.parametrize("request_class", [CHAT, RESPONSES, MESSAGES])
def test_f24_a_list_is_no_body(request_class: str) -> None:
    with pytest.raises(recipe_rs.ConversionError, match="request body"):
        getattr(recipe_rs, request_class)(b"[]")


@pytest.mark.parametrize("limit", [100, 4096])
def test_lengths_beyond_the_context_name_all_parts(limit: int) -> None:
    body = {"model": V41, "messages": [{"role": "user", "content": "x"}], "max_tokens": 60}
    for codec in (official, recipe_rs):
        request = codec.ChatCompletionRequest(body).convert(codec.ConversionOptions())
        assert request.resolve_max_tokens(limit - 60, limit) == 60
        with pytest.raises(codec.ConversionError) as refused:
            request.resolve_max_tokens(limit - 59, limit)
        for number in (limit, limit + 1, limit - 59, 60):
            assert str(number) in str(refused.value)
