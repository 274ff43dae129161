"""The step loop: schedule -> execute -> update. Knows neither text nor threads nor tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from deepinfer.engine.admission import AdmissionRules
from deepinfer.engine.overlap import StepQueue
from deepinfer.executor.base import Executor
from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput
from deepinfer.request import Request
from deepinfer.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step produced.

    Attributes:
        outputs: one for each request that got tokens or ended.
        stats: numbers about the step; None when there was nothing to compute.
    """

    outputs: list[EngineOutput]
    stats: StepStats | None


class EngineCore:
    """Joins a scheduler and an executor. One thread calls it."""

    def __init__(
        self,
        executor: Executor,
        scheduler: Scheduler,
        rules: AdmissionRules,
        *,
        overlaps_steps: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`overlaps_steps` plans each step while the one before computes. Outputs come one call of `step` later."""
        self.executor = executor
        self.scheduler = scheduler
        self.rules = rules
        self._clock = clock
        self._queue = StepQueue(executor) if overlaps_steps else None

    def add_request(self, request: Request) -> None:
        """Queue a request; raises RequestError when its id is in use."""
        self.scheduler.add_request(request)

    def abort_request(self, request_id: str) -> None:
        """End a request in whatever state it is; an unknown id is ignored. Its last output comes with the next step."""
        self.scheduler.abort_request(request_id)

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self.scheduler.has_work

    def step(self) -> StepResult:
        """Run one step. An exception of the executor leaves the engine unusable."""
        if self._queue is not None:
            return self._step_ahead(self._queue)
        start = self._clock()
        plan = self.scheduler.schedule()
        if not plan.num_scheduled_tokens:
            return StepResult(self.scheduler.take_outputs(), None)
        execute_start = self._clock()
        result = self.executor.execute(plan)
        execute_end = self._clock()
        outputs = self.scheduler.update(plan, result)
        stats = self.scheduler.record_step(
            plan, step_seconds=self._clock() - start, execute_seconds=execute_end - execute_start
        )
        return StepResult(outputs, stats)

    def _step_ahead(self, queue: StepQueue) -> StepResult:
        """Plan a step, then take over the result of the one before it."""
        plan = self.scheduler.schedule()
        if plan.num_scheduled_tokens:
            queue.submit(plan)
            if len(queue) == 1:
                return StepResult(self.scheduler.take_outputs(), None)
        if not len(queue):
            return StepResult(self.scheduler.take_outputs(), None)
        executed = queue.take()
        outputs = self.scheduler.update(executed.plan, executed.result)
        stats = self.scheduler.record_step(
            executed.plan, step_seconds=executed.seconds, execute_seconds=executed.seconds
        )
        return StepResult(outputs, stats)

    def stop_overlap(self) -> None:
        """End the thread that overlaps steps, if there is one; the executor stays open."""
        if self._queue is not None:
            self._queue.close()

    def close(self) -> None:
        """Release the executor."""
        self.stop_overlap()
        self.executor.close()
