"""Timing a new engine's steps fills the curve and leaves the executor as it was."""

import pytest

from deepinfer.cost import StepCost
from deepinfer.engine.row_timing import time_rows
from deepinfer.executor.scripted import ScriptedExecutor
from deepinfer.speculative import RowCurve


@pytest.mark.parametrize(("num_blocks", "max_rows", "largest"), [(8, 512, 32), (1, 512, 16), (8, 5, 4), (1, 1, 1)])
def test_times_what_fits(num_blocks, max_rows, largest):
    executor, row_counts = ScriptedExecutor(num_blocks=num_blocks, block_size=16), []
    execute = executor.execute

    def record(plan):
        row_counts.append(plan.total_num_scheduled_tokens)
        return execute(plan)

    executor.execute = record
    curve = RowCurve()
    time_rows(executor, curve, max_rows=max_rows)
    assert curve.is_measured
    assert max(row_counts) == largest
    assert row_counts[-1] == 0
    assert executor.num_known_requests == 0
    assert curve.row_seconds(StepCost(0.0, 0.0, 0.0, 0.0, 0.0))[largest] > 0.0
