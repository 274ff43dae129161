"""The curve of step times over rows: measured where it was, straight between, never falling, deaf to outliers."""

import pytest

from deepinfer.cost import StepCost
from deepinfer.speculative import RowCurve

COST = StepCost(2.0, 0.0, 0.0, 0.5, 0.0)


def test_without_measurements_the_cost_model_speaks():
    curve = RowCurve()
    assert not curve.is_measured
    assert curve.row_seconds(COST)[:4] == [2.0, 2.5, 3.0, 3.5]


def test_a_line_is_found_and_gone_on_with():
    curve = RowCurve()
    for rows in (1, 4, 8, 12):
        curve.observe(rows, 3.0 + 2.0 * rows, 0.0)
    assert curve.row_seconds(COST) == pytest.approx([3.0 + 2.0 * rows for rows in range(513)])


def test_steps_of_the_curve_appear_with_samples():
    def stairs(rows):
        return 5.0 if rows <= 4 else 9.0

    few, many = RowCurve(), RowCurve()
    for rows in range(1, 9):
        few.observe(rows, stairs(rows), 0.0)
        for _ in range(9):
            many.observe(rows, stairs(rows), 0.0)
    rise = [values[5] - values[4] for values in (few.row_seconds(COST), many.row_seconds(COST))]
    assert 1.0 < rise[0] < rise[1] < 4.0
    assert rise[1] > 3.0


def test_one_measurement_counts_half_for_the_fixed_part():
    curve = RowCurve()
    curve.observe(4, 8.0, 0.0)
    assert curve.row_seconds(COST)[:9] == pytest.approx([4.0 + rows for rows in range(9)])


def test_a_median_ignores_a_disturbed_step_and_nothing_falls():
    curve = RowCurve()
    for seconds in (5.0, 5.1, 90.0, 4.9, 5.0):
        curve.observe(2, seconds, 0.0)
    curve.observe(6, 3.0, 0.0)
    values = curve.row_seconds(COST)
    assert 4.0 < values[2] < 5.1
    assert values == sorted(values)


def test_the_context_is_left_out_but_never_everything():
    curve = RowCurve()
    curve.observe(1, 10.0, 4.0)
    assert curve.row_seconds(COST)[1] == pytest.approx(6.0)
    buried = RowCurve()
    buried.observe(1, 10.0, 20.0)
    assert buried.row_seconds(COST)[1] == pytest.approx(3.0)


@pytest.mark.parametrize(("rows", "seconds"), [(0, 1.0), (1000, 1.0), (3, 0.0), (3, -1.0)])
def test_impossible_steps_are_ignored(rows, seconds):
    curve = RowCurve()
    curve.observe(rows, seconds, 0.0)
    assert not curve.is_measured


def test_the_least_time_of_a_further_row():
    curve = RowCurve()
    for rows in (1, 4, 8, 12):
        curve.observe(rows, 3.0 + 2.0 * rows, 0.0)
    curve.row_seconds(COST)
    assert [curve.least_row_seconds(rows) for rows in (1, 7, 511, 512, 9999)] == pytest.approx([2.0] * 5)


def test_a_busy_neighbour_slows_all_and_bends_nothing():
    """While the machine is three times slower only steps of 8 rows run, and later those of 2."""
    curve = RowCurve()
    for rows in (1, 2, 4, 8, 16):
        for _ in range(9):
            curve.observe(rows, 3.0 + 2.0 * rows, 0.0)
    before = list(curve.row_seconds(COST))
    for slowness, rows in ((3.0, 8), (0.5, 2)):
        for _ in range(40):
            curve.observe(rows, slowness * (3.0 + 2.0 * rows), 0.0)
            curve.row_seconds(COST)
        assert curve.slowness == pytest.approx(slowness, rel=0.1)
        assert curve.row_seconds(COST)[:17] == pytest.approx(before[:17], rel=0.1)


def test_a_wrong_shape_is_corrected_by_what_is_measured():
    curve = RowCurve()
    for rows in (1, 2, 4, 8, 16):
        curve.observe(rows, 3.0 + 2.0 * rows, 0.0)
    curve.row_seconds(COST)
    for _ in range(60):
        for rows in (1, 1, 1, 8):
            curve.observe(rows, 5.0, 0.0)  # in truth eight rows take no longer than one
            curve.row_seconds(COST)
    values = curve.row_seconds(COST)
    assert values[8] / values[1] < 1.3
