"""Runs the executor in a thread of its own, so that the next step is planned while one computes."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from deepinfer.executor.base import Executor
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A plan, what came of it, and how long that took."""

    plan: SchedulerOutput
    result: ModelRunnerOutput
    seconds: float


class StepQueue:
    """Executes plans one after the other, in their order. What a plan leaves open, such as the last token of the step
    before, is known to the executor when its turn comes: it keeps the tokens of its requests itself, and so grammars,
    penalties and forced tokens see the very state that they would see without the thread."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deepinfer-executor")
        self._submitted: deque[Future[ExecutedStep]] = deque()

    def __len__(self) -> int:
        """Plans submitted whose result was not taken."""
        return len(self._submitted)

    def submit(self, plan: SchedulerOutput) -> None:
        """Queue a plan. Nothing in it may change any more."""
        self._submitted.append(self._thread.submit(self._execute, plan))

    def take(self) -> ExecutedStep:
        """Wait for the oldest plan; raises what the executor raised."""
        return self._submitted.popleft().result()

    def close(self) -> None:
        """Drop plans not yet begun, wait for the one that runs, end the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _execute(self, plan: SchedulerOutput) -> ExecutedStep:
        start = time.perf_counter()
        result = self._executor.execute(plan)
        return ExecutedStep(plan, result, time.perf_counter() - start)
