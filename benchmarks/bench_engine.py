"""The engine's own time: what a step costs beside the model, what the prefix cache and the sampler cost.

    scripts/bench engine [--steps N] [--json FILE]

No model is needed: the executor here answers at once. Absolute times depend on the machine and on what else runs;
the smallest of many steps is the steadiest figure, so it stands beside the median.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from deepinfer import EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.config import ModelConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.engine.core import EngineCore
from deepinfer.executor.scripted import make_scripted_model_config
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput
from deepinfer.sampling import Sampler, SamplingRow

VOCAB_SIZE = 49_152
BATCH_SIZES = (1, 8, 32, 64, 256)
LONG_PROMPT = 77_000
SAMPLING_KINDS: dict[str, SamplingParams] = {
    "greedy": SamplingParams(temperature=0.0),
    "temperature 1": SamplingParams(seed=1),
    "top_p 0.9": SamplingParams(seed=1, top_p=0.9),
    "top_k 40": SamplingParams(seed=1, top_k=40),
    "min_p 0.05": SamplingParams(seed=1, min_p=0.05),
    "greedy, 5 logprobs": SamplingParams(temperature=0.0, logprobs=5),
    "greedy, penalties": SamplingParams(temperature=0.0, repetition_penalty=1.1, presence_penalty=0.5),
}


class InstantExecutor:
    """Gives every request that has reached its end the same token, and measures itself."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.seconds = 0.0
        self._lengths: dict[str, int] = {}

    @property
    def model_config(self) -> ModelConfig:
        """A shape with a long context."""
        return make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=200_000)

    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Answer at once."""
        start = time.perf_counter()
        for new in plan.scheduled_new_requests:
            self._lengths[new.request_id] = len(new.token_ids) - new.num_computed_tokens
        result = ModelRunnerOutput()
        for request_id, count in plan.num_scheduled_tokens.items():
            rest = self._lengths[request_id] - count + len(plan.draft_token_ids.get(request_id, ()))
            self._lengths[request_id] = rest or 1
            if rest == 0:
                result.sampled_token_ids[request_id] = [7]
        self.seconds += time.perf_counter() - start
        return result

    def describe(self) -> str:
        """One line."""
        return "instant"

    def close(self) -> None:
        """Nothing to release."""


def make_core(executor: InstantExecutor, *, max_num_seqs: int) -> EngineCore:
    """An engine that prefills whole prompts in a step."""
    scheduler = SchedulerConfig(max_num_seqs=max_num_seqs, max_num_batched_tokens=200_000)
    return make_engine_core(EngineConfig(model=Path("none"), scheduler=scheduler), executor, model_identity=b"")


def add(core: EngineCore, name: str, prompt: array[int], max_tokens: int) -> None:
    """Queue a greedy request."""
    params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
    core.add_request(core.rules.make_request(name, prompt, params, arrival_time=time.monotonic()))


def measure_decode_steps(num_steps: int) -> Iterator[tuple[str, list[float]]]:
    """Schedule + update of a step in which every request decodes."""
    rng = random.Random(0)
    for batch_size in BATCH_SIZES:
        executor = InstantExecutor(num_blocks=50_000)
        core = make_core(executor, max_num_seqs=batch_size)
        for number in range(batch_size):
            prompt = array("I", rng.choices(range(VOCAB_SIZE), k=100 + number % 64))
            add(core, f"r{number}", prompt, max_tokens=num_steps + 10)
        core.step()
        seconds = []
        for _ in range(num_steps):
            executor.seconds = 0.0
            start = time.perf_counter()
            core.step()
            seconds.append(time.perf_counter() - start - executor.seconds)
        yield f"step, {batch_size} decoding", seconds


def measure_long_prompts() -> Iterator[tuple[str, list[float]]]:
    """Admission of a long prompt, unknown and known to the prefix cache."""
    executor = InstantExecutor(num_blocks=20_000)
    core = make_core(executor, max_num_seqs=1)
    rng = random.Random(0)
    for kind in ("unknown", "known"):
        seconds = []
        for number in range(5):
            if kind == "unknown":
                prompt = array("I", rng.choices(range(VOCAB_SIZE), k=LONG_PROMPT))
            executor.seconds = 0.0
            start = time.perf_counter()
            add(core, f"{kind}{number}", prompt, max_tokens=1)
            while core.has_work:
                core.step()
            seconds.append(time.perf_counter() - start - executor.seconds)
        yield f"prompt of {LONG_PROMPT:,} tokens, {kind}", seconds


def measure_sampler() -> Iterator[tuple[str, list[float]]]:
    """One row of a vocabulary of 49,152."""
    logits = (np.random.default_rng(0).standard_normal((1, VOCAB_SIZE)) * 4).astype(np.float32)
    sampler = Sampler(VOCAB_SIZE)
    for kind, params in SAMPLING_KINDS.items():
        row = SamplingRow(params, list(range(200)), 100)
        yield f"sample, {kind}", time_calls(lambda row=row: sampler.sample(logits, [row]))  # type: ignore[misc]


def time_calls(call: Callable[[], object], count: int = 60) -> list[float]:
    """Seconds of each of `count` calls."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    print(f"{'what':42} {'median us':>10} {'least us':>10}")
    for measurements in (measure_decode_steps(options.steps), measure_long_prompts(), measure_sampler()):
        for name, seconds in measurements:
            figures[name] = {"median_us": 1e6 * median(seconds), "least_us": 1e6 * min(seconds)}
            print(f"{name:42} {figures[name]['median_us']:10.1f} {figures[name]['least_us']:10.1f}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
