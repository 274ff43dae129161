"""The curve of step times over rows: measured where it was, straight between, never falling, deaf to outliers."""

import pytest

from deepinfer.cost import StepCost
from deepinfer.speculative import RowCurve

COST = StepCost(2.0, 0.0, 0.0, 0.5, 0.0)


def test_without_measurements_the_cost_model_speaks():
    curve = RowCurve()
    assert not curve.is_measured
    assert curve.row_seconds(COST)[:4] == [2.0, 2.5, 3.0, 3.5]


def test_interpolates_and_goes_on():
    curve = RowCurve()
    for rows, seconds in ((1, 5.0), (4, 8.0), (8, 9.0)):
        curve.observe(rows, seconds, 0.0)
    seconds = curve.row_seconds(COST)
    assert seconds[1:9] == pytest.approx([5.0, 6.0, 7.0, 8.0, 8.25, 8.5, 8.75, 9.0])
    assert seconds[9] == pytest.approx(9.0 + 4.0 / 7.0)
    assert seconds[0] == pytest.approx(5.0 - 4.0 / 7.0)
    assert len(seconds) == 513


def test_a_median_ignores_a_disturbed_step_and_nothing_falls():
    curve = RowCurve()
    for seconds in (5.0, 5.1, 90.0, 4.9, 5.0):
        curve.observe(2, seconds, 0.0)
    curve.observe(6, 3.0, 0.0)
    values = curve.row_seconds(COST)
    assert values[2] == pytest.approx(5.0)
    assert values[1:] == sorted(values[1:])


def test_the_context_is_left_out_but_never_everything():
    curve = RowCurve()
    curve.observe(1, 10.0, 4.0)
    curve.observe(2, 10.0, 20.0)
    values = curve.row_seconds(COST)
    assert values[1] == pytest.approx(6.0)
    assert values[2] >= 6.0


@pytest.mark.parametrize(("rows", "seconds"), [(0, 1.0), (1000, 1.0), (3, 0.0), (3, -1.0)])
def test_impossible_steps_are_ignored(rows, seconds):
    curve = RowCurve()
    curve.observe(rows, seconds, 0.0)
    assert not curve.is_measured
