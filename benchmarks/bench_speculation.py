"""What speculation gains on the default model: off, a fixed number of drafts, and as many as are worth it.

    scripts/bench speculation [--clients 1 8 32] [--rounds N] [--tokens N] [--json FILE]

One engine serves the same requests in all modes, one mode after the other within a round and in another order each
round, so that whatever else the machine does hits all alike. Outputs are the same by construction, which is checked.
Ratios of a round's output tokens/s are averaged as logarithms; the interval is Student's at 95%.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from paired_runs import Run, ratio_with_interval, serve
from speculation_prompts import PROMPT_KINDS

from deepinfer.config import EngineConfig, SchedulerConfig, SpeculativeConfig
from deepinfer.cost import StepCost, StepLoad
from deepinfer.engine.build import make_engine_core
from deepinfer.engine.core import EngineCore
from deepinfer.engine.row_timing import time_rows
from deepinfer.engine.text import TextCodec
from deepinfer.executor.factory import make_executor
from deepinfer.loader import open_checkpoint
from deepinfer.loader.default_model import find_or_fetch_default_model
from deepinfer.request import Request
from deepinfer.sampling_params import SamplingParams
from deepinfer.speculative import Speculator, make_speculator


class SwitchedDrafts:
    """A draft policy that passes everything to the one of the mode at hand; None drafts nothing."""

    max_draft_tokens = 15

    def __init__(self) -> None:
        self.current: Speculator | None = None

    def propose(self, requests: Sequence[Request], max_rows: int, cost: StepCost) -> Mapping[str, list[int]]:
        """See `DraftPolicy`."""
        return self.current.propose(requests, max_rows, cost) if self.current else {}

    def observe_tokens(self, request: Request, num_new_tokens: int) -> None:
        """See `DraftPolicy`."""
        if self.current:
            self.current.observe_tokens(request, num_new_tokens)

    def observe_step(self, load: StepLoad, num_requests: int, seconds: float) -> None:
        """See `DraftPolicy`."""
        if self.current:
            self.current.observe_step(load, num_requests, seconds)

    def forget(self, request: Request) -> None:
        """See `DraftPolicy`."""
        if self.current:
            self.current.forget(request)


def measure(
    core: EngineCore, switch: SwitchedDrafts, modes: dict[str, Speculator | None], prompts: list[list[int]],
    num_clients: int, options: argparse.Namespace,
) -> dict[str, object]:  # fmt: skip
    """All rounds of one load."""
    params = [
        SamplingParams(temperature=options.temperature, seed=number, max_tokens=options.tokens)
        for number in range(len(prompts))
    ]
    runs: dict[str, list[Run]] = {name: [] for name in modes}
    rng = random.Random(0)
    for round_number in range(-1, options.rounds):
        names = list(modes)
        rng.shuffle(names)
        for name in names:
            switch.current = modes[name]
            run = serve(core, prompts, num_clients, params)
            if round_number >= 0:  # the first round fills the prefix cache and teaches the confidences
                runs[name].append(run)
    first = next(iter(runs.values()))[0].outputs
    if any(run.outputs != first for each in runs.values() for run in each):
        raise SystemExit("outputs differ between modes: speculation must not change them")
    rates = {name: [run.tokens_per_second for run in each] for name, each in runs.items()}
    row: dict[str, object] = {"clients": num_clients, "requests": len(prompts), "rounds": options.rounds}
    for name, each in runs.items():
        row[name] = {
            "tokens_per_second": statistics.median(rates[name]),
            "tokens_per_step_and_client": statistics.fmean(
                run.num_tokens / run.num_steps / num_clients for run in each
            ),
            "verify_len": statistics.fmean(
                run.num_decode_rows / max(run.num_decode_rows - run.num_drafted, 1) for run in each
            ),
            "drafted": sum(run.num_drafted for run in each),
            "acceptance_rate": sum(run.num_accepted for run in each) / max(sum(run.num_drafted for run in each), 1),
        }
    for name, base in (("fixed", "off"), ("scheduled", "off"), ("scheduled", "fixed")):
        row[f"{name}/{base}"] = ratio_with_interval(rates[name], rates[base])
    return row


def format_row(kind: str, row: dict) -> str:
    """One line of the table."""
    cells = [f"{kind:8} {row['clients']:>3}", f"{row['off']['tokens_per_second']:8.1f}"]
    for name in ("fixed", "scheduled"):
        ratio, low, high = row[f"{name}/off"]
        cells.append(
            f"{ratio:5.2f} [{low:4.2f}, {high:4.2f}] {row[name]['verify_len']:5.2f} {row[name]['acceptance_rate']:5.2f}"
        )
    ratio, low, high = row["scheduled/fixed"]
    cells.append(f"{ratio:5.2f} [{low:4.2f}, {high:4.2f}]")
    return "  ".join(cells)


def main() -> None:
    """Run all loads and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--kinds", nargs="+", choices=PROMPT_KINDS, default=list(PROMPT_KINDS))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--requests-per-client", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--fixed", type=int, default=5)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    config = EngineConfig(
        model=find_or_fetch_default_model(report=print), max_model_len=2048, scheduler=SchedulerConfig(max_num_seqs=64)
    )
    checkpoint = open_checkpoint(config.model)
    codec = TextCodec(checkpoint)
    executor = make_executor(config, checkpoint)
    switch = SwitchedDrafts()
    core = make_engine_core(config, executor, model_identity=b"", drafts=switch)
    scheduled = make_speculator(SpeculativeConfig(proposer="ngram"))
    assert scheduled is not None
    time_rows(executor, scheduled.curve, max_rows=512)
    modes = {
        "off": None,
        "fixed": make_speculator(SpeculativeConfig(proposer="ngram", num_draft_tokens=options.fixed)),
        "scheduled": scheduled,
    }
    print(f"{executor.describe()}; ratios are of output tokens/s, [95% interval], rows a step, acceptance", flush=True)
    heads = (f"fixed {options.fixed} / off", "scheduled / off")
    print(f"{'prompts':8} {'cl.':>3}  {'off tok/s':>8}  {heads[0]:31}  {heads[1]:31}  scheduled / fixed")
    rows = []
    for kind, num_clients in itertools.product(options.kinds, options.clients):
        count = num_clients * options.requests_per_client
        prompts = [
            list(codec.encode_chat([{"role": "user", "content": PROMPT_KINDS[kind](number)}]))
            for number in range(count)
        ]
        row = measure(core, switch, modes, prompts, num_clients, options)
        rows.append({"kind": kind, **row})
        print(format_row(kind, row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
