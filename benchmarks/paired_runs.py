"""The same requests served in several ways, and ratios between the ways with their uncertainty."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from dataclasses import dataclass, field

from deepinfer.engine.core import EngineCore
from deepinfer.sampling_params import SamplingParams

# 97.5% quantiles of Student's distribution by degrees of freedom; beyond the table the normal one is close enough.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)


@dataclass
class Run:
    """One mode serving one set of requests."""

    seconds: float = 0.0
    num_tokens: int = 0
    num_steps: int = 0
    num_decode_rows: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    outputs: dict[str, list[int]] = field(default_factory=dict)

    @property
    def tokens_per_second(self) -> float:
        """Output tokens of all clients."""
        return self.num_tokens / self.seconds


def serve(core: EngineCore, prompts: list[list[int]], num_clients: int, params: list[SamplingParams]) -> Run:
    """Each client sends its next request when the one before has ended; time counts until the last one ended."""
    run = Run()
    waiting = list(zip(itertools.count(), prompts, params, strict=False))[::-1]
    start = time.perf_counter()
    num_running = 0
    while waiting or core.has_work:
        while waiting and num_running < num_clients:
            number, prompt, options = waiting.pop()
            request = core.rules.make_request(f"r{number}", prompt, options, arrival_time=time.monotonic())
            core.add_request(request)
            run.outputs[request.request_id] = []
            num_running += 1
        step = core.step()
        if step.stats is not None:
            run.num_steps += 1
            run.num_decode_rows += sum(step.stats.verify_lens)
            run.num_drafted += step.stats.num_draft_tokens
            run.num_accepted += step.stats.num_accepted_tokens
        for output in step.outputs:
            run.outputs[output.request_id] += output.new_token_ids
            run.num_tokens += len(output.new_token_ids)
            num_running -= output.finish_reason is not None
    run.seconds = time.perf_counter() - start
    return run


def ratio_with_interval(numerators: list[float], denominators: list[float]) -> tuple[float, float, float]:
    """Geometric mean of paired ratios with its 95% interval."""
    logs = [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    quantile = _STUDENT[len(logs) - 2] if len(logs) - 2 < len(_STUDENT) else 1.96
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
