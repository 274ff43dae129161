"""What planning steps ahead gains on the default model, with all processors computing.

    scripts/bench overlap [--clients 1 8 32] [--rounds N] [--tokens N] [--json FILE]

The same requests with overlap scheduling and without, in turn; outputs are compared. Ratios are of output tokens/s.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path

from paired_runs import Run, ratio_with_interval, serve
from speculation_prompts import PROMPT_KINDS

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.engine.text import TextCodec
from deepinfer.executor.factory import make_executor
from deepinfer.loader import open_checkpoint
from deepinfer.loader.default_model import find_or_fetch_default_model
from deepinfer.sampling_params import SamplingParams


def main() -> None:
    """Run all loads and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    # Cores come and go over one executor, so none may find what another left in the blocks.
    config = EngineConfig(
        model=find_or_fetch_default_model(report=print),
        max_model_len=2048,
        cache=CacheConfig(enable_prefix_caching=False),
        scheduler=SchedulerConfig(max_num_seqs=64, target_itl_seconds=None),
    )
    checkpoint = open_checkpoint(config.model)
    codec = TextCodec(checkpoint)
    executor = make_executor(config, checkpoint)
    print(executor.describe())
    print("clients  tok/s without  with / without [95% interval]", flush=True)
    rows = []
    for num_clients in options.clients:
        prompts = [
            list(codec.encode_chat([{"role": "user", "content": PROMPT_KINDS["summary"](number)}]))[:40]
            for number in range(num_clients)
        ]
        params = [SamplingParams(temperature=0.0, max_tokens=options.tokens, ignore_eos=True, seed=0) for _ in prompts]
        runs: dict[bool, list[Run]] = {False: [], True: []}
        for round_number in range(-1, options.rounds):
            for overlaps in (round_number % 2 == 0, round_number % 2 != 0):
                scheduler = replace(config.scheduler, overlap_scheduling=overlaps)
                core = make_engine_core(replace(config, scheduler=scheduler), executor, model_identity=b"")
                run = serve(core, prompts, num_clients, params)
                core.stop_overlap()
                if round_number >= 0:
                    runs[overlaps].append(run)
        if any(run.outputs != runs[False][0].outputs for each in runs.values() for run in each):
            raise SystemExit("outputs differ: overlap must not change them")
        rates = {name: [run.tokens_per_second for run in each] for name, each in runs.items()}
        ratio = ratio_with_interval(rates[True], rates[False])
        rows.append({"clients": num_clients, "without": statistics.median(rates[False]), "ratio": ratio})
        print(
            f"{num_clients:7}  {rows[-1]['without']:13.1f}  {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}]", flush=True
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
