"""Times steps of a new engine, so that the first choice of what to verify rests on this machine and model."""

from __future__ import annotations

import time
from typing import Final

from deepinfer.executor.base import Executor
from deepinfer.outputs import NewRequestData, SchedulerOutput
from deepinfer.sampling_params import SamplingParams
from deepinfer.speculative import RowCurve

_ROW_COUNTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_ROWS_PER_REQUEST: Final = 16
_NUM_ROUNDS: Final = 4
_MAX_SECONDS: Final = 1.5


def time_rows(executor: Executor, curve: RowCurve, *, max_rows: int) -> None:
    """Run steps of up to 32 rows that verify made-up drafts, within about 1.5 s. Leaves nothing in the executor.

    Of the first round, which also touches memory for the first time, nothing is kept.
    """
    params = SamplingParams(temperature=0.0, seed=0, max_tokens=None)
    deadline = time.monotonic() + _MAX_SECONDS
    finished: list[str] = []
    for round_number in range(_NUM_ROUNDS):
        for num_rows in _ROW_COUNTS:
            num_requests = -(-num_rows // _ROWS_PER_REQUEST)
            if num_rows > max_rows or num_requests > executor.num_blocks or time.monotonic() > deadline:
                break
            plan = SchedulerOutput(finished_request_ids=finished)
            for number in range(num_requests):
                name = f"timing-{number}"
                count = min(_ROWS_PER_REQUEST, num_rows - number * _ROWS_PER_REQUEST)
                plan.scheduled_new_requests.append(
                    NewRequestData(name, [0], 1, params, frozenset(), [number], num_computed_tokens=0)
                )
                plan.num_scheduled_tokens[name] = count
                if count > 1:
                    plan.draft_token_ids[name] = [0] * (count - 1)
            start = time.perf_counter()
            executor.execute(plan)
            if round_number > 0:
                curve.observe(num_rows, time.perf_counter() - start, 0.0)
            finished = list(plan.num_scheduled_tokens)
    if finished:
        executor.execute(SchedulerOutput(finished_request_ids=finished))
