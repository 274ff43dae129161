"""Decode beside a busy process on one core: python benchmarks/bench_neighbour.py [--llama-dir DIR]

One stream decodes on all cores, in turns alone and while another process spins on core 0. The share of the speed that
is left, and the longest single step, are medians over the runs; llama.cpp's share stands beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench_cpu import DEFAULT_MODEL
from bench_serving import processor
from native_steps import NativeSteps, load_weights

CONTEXT = 64
SPIN = "import os\nos.sched_setaffinity(0, {0})\nwhile True: pass"


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """A process that never rests, on core 0."""
    with subprocess.Popen([sys.executable, "-c", SPIN]) as process:
        try:
            time.sleep(0.5)
            yield
        finally:
            process.kill()


def time_native(steps: NativeSteps, num_steps: int) -> tuple[float, float]:
    """(tokens/s, longest step in ms)."""
    seconds = []
    for _ in range(num_steps):
        begin = time.perf_counter()
        steps.step([CONTEXT], [1])
        seconds.append(time.perf_counter() - begin)
    return num_steps / sum(seconds), 1e3 * max(seconds)


def time_llama(folder: Path, model: str, num_threads: int) -> tuple[float, float]:
    """(tokens/s, nothing: the tool reports no single steps)."""
    command = [str(folder / "llama-bench"), "-m", model, "-t", str(num_threads)]
    command += ["-p", "0", "-n", "48", "-r", "1", "-o", "json"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(result.stdout)[0]["avg_ts"], float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300, help="steps in a run")
    parser.add_argument("--llama-dir", type=Path, help="folder of llama-bench")
    a = parser.parse_args()

    steps = NativeSteps(load_weights(Path(a.model), a.threads), num_sequences=1, max_len=256, num_threads=a.threads)
    steps.prefill(CONTEXT)
    contenders: dict[str, Callable[[], tuple[float, float]]] = {"native": lambda: time_native(steps, a.steps)}
    if a.llama_dir:
        contenders["llama.cpp"] = lambda: time_llama(a.llama_dir, a.model, a.threads)
    idle: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    busy: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(a.runs):
        for name, run in contenders.items():
            idle[name].append(run())
            with busy_core():
                busy[name].append(run())
    print(json.dumps({"processor": processor(), "threads": a.threads, "runs": a.runs, "steps": a.steps}))
    for name in contenders:
        alone, beside = (statistics.median(rate for rate, _ in runs[name]) for runs in (idle, busy))
        worst = statistics.median(longest for _, longest in busy[name])
        row = {"name": name, "idle_tok_s": round(alone, 1), "busy_tok_s": round(beside, 1)}
        row |= {"share": round(beside / alone, 3), "longest_step_ms": round(worst, 1)}
        print(json.dumps(row))


if __name__ == "__main__":
    main()
