"""Times steps of a new engine, so that the first choice of what to verify rests on this machine and model."""

from __future__ import annotations

import time
from typing import Final

from deepinfer.executor.base import Executor
from deepinfer.outputs import NewRequestData, SchedulerOutput
from deepinfer.sampling_params import SamplingParams
from deepinfer.speculative import RowCurve

_ROW_COUNTS: Final = (1, 2, 4, 8, 16, 32)
_ROWS_PER_REQUEST: Final = 16
_NUM_ROUNDS: Final = 5
_MAX_SECONDS: Final = 1.2


def time_rows(executor: Executor, curve: RowCurve, *, max_rows: int) -> None:
    """Run steps of up to 32 rows that verify made-up drafts, for about a second. Leaves nothing in the executor."""
    row_counts = [count for count in _ROW_COUNTS if count <= min(max_rows, executor.num_blocks * _ROWS_PER_REQUEST)]
    finished = _run_step(executor, row_counts[-1], [])  # touches the memory that the others will use
    deadline = time.monotonic() + _MAX_SECONDS
    for num_rows in row_counts * _NUM_ROUNDS:
        start = time.perf_counter()
        finished = _run_step(executor, num_rows, finished)
        curve.observe(num_rows, time.perf_counter() - start, 0.0)
        if time.monotonic() > deadline:
            break
    executor.execute(SchedulerOutput(finished_request_ids=finished))


def _run_step(executor: Executor, num_rows: int, finished: list[str]) -> list[str]:
    """Verify `num_rows` rows of new requests after dropping finished ones; returns the ids of the new ones."""
    params = SamplingParams(temperature=0.0, seed=0, max_tokens=None)
    plan = SchedulerOutput(finished_request_ids=finished)
    for number, start in enumerate(range(0, num_rows, _ROWS_PER_REQUEST)):
        name = f"timing-{number}"
        count = min(_ROWS_PER_REQUEST, num_rows - start)
        plan.scheduled_new_requests.append(
            NewRequestData(name, [0], 1, params, frozenset(), [number], num_computed_tokens=0)
        )
        plan.num_scheduled_tokens[name] = count
        if count > 1:
            plan.draft_token_ids[name] = [0] * (count - 1)
    executor.execute(plan)
    return list(plan.num_scheduled_tokens)
