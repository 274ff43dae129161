"""What a step takes by its number of rows, measured: a curve, since kernels have steps that no straight line has."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from statistics import median

from deepinfer.cost import StepCost, solve_non_negative

_KNOTS = (*range(1, 9), *range(10, 16, 2), *range(16, 32, 4), *range(32, 64, 8), *range(64, 128, 16),
          *range(128, 256, 32), *range(256, 513, 64))  # fmt: skip
_NUM_SAMPLES = 9
_NUM_RATIOS = 9
_REFRESH_INTERVAL = 16
_LINE_WEIGHT = 2.0  # samples that a straight line through all medians counts for: few samples make a jagged curve
_MIN_SHARE = 0.3  # of a measured step that is left to its rows, whatever the context is thought to take


class RowCurve:
    """Seconds of a decode step by its rows, without what its context takes.

    What other processes take slows all steps alike for a while. So a measured step counts relative to how the last
    steps compare with the curve: the curve keeps its shape, which decides, and `slowness` follows the machine.
    """

    def __init__(self) -> None:
        self._samples: dict[int, deque[float]] = {}
        self._curve: list[float] = []
        self._num_until_refresh = 0
        self._ratios: deque[float] = deque(maxlen=_NUM_RATIOS)
        self.slowness = 1.0
        self._least_row_seconds: dict[int, float] = {}

    @property
    def is_measured(self) -> bool:
        """Whether there is anything to go by."""
        return bool(self._samples)

    def observe(self, num_rows: int, seconds: float, context_seconds: float) -> None:
        """Take in a measured step without prefill."""
        if not 1 <= num_rows <= _KNOTS[-1] or seconds <= 0.0:
            return
        knot = _KNOTS[bisect_right(_KNOTS, num_rows) - 1]
        samples = self._samples.setdefault(knot, deque(maxlen=_NUM_SAMPLES))
        # A step between two knots counts for the lower one as if each row took the same.
        share = max(seconds - context_seconds, _MIN_SHARE * seconds)
        if self._curve and self._curve[num_rows] > 0.0:
            self._ratios.append(share / self._curve[num_rows])
            self.slowness = median(self._ratios)
            share /= self.slowness
        samples.append(share * knot / num_rows if knot >= 16 else share)
        self._num_until_refresh -= 1

    def row_seconds(self, cost: StepCost) -> list[float]:
        """Seconds by number of rows, never decreasing; entry 0 is the fixed part. Before the first measurement it is
        what `cost` says."""
        if self._num_until_refresh <= 0 or not self._curve:
            self._num_until_refresh = _REFRESH_INTERVAL
            self._curve = self._interpolate(cost)
            self._least_row_seconds.clear()
        return self._curve

    def least_row_seconds(self, num_rows: int) -> float:
        """The least time for each of some rows more than `num_rows`, by the curve that `row_seconds` gave last."""
        least = self._least_row_seconds.get(num_rows)
        if least is None:
            curve = self._curve
            start = min(num_rows, len(curve) - 2)
            least = min((curve[rows] - curve[start]) / (rows - start) for rows in range(start + 1, len(curve)))
            self._least_row_seconds[num_rows] = least
        return least

    def _interpolate(self, cost: StepCost) -> list[float]:
        knots = sorted(self._samples)
        if not knots:
            return [cost.base_seconds + cost.decode_row_seconds * rows for rows in range(_KNOTS[-1] + 1)]
        medians = [median(self._samples[knot]) for knot in knots]
        base, slope = _fit_line(knots, medians)
        weights = [len(self._samples[knot]) for knot in knots]
        blends = [
            (weight * seconds + _LINE_WEIGHT * (base + slope * knot)) / (weight + _LINE_WEIGHT)
            for knot, seconds, weight in zip(knots, medians, weights, strict=True)
        ]
        curve = [min(base, blends[0])]
        for knot, seconds in zip(knots, _make_rising(blends, weights), strict=True):
            start, low = len(curve) - 1, curve[-1]
            rise = max(seconds - low, 0.0) / (knot - start)
            curve.extend(low + rise * (rows - start) for rows in range(start + 1, knot + 1))
        while len(curve) <= _KNOTS[-1]:
            curve.append(curve[-1] + slope)
        return curve


def _fit_line(knots: list[int], seconds: list[float]) -> tuple[float, float]:
    """(seconds at 0 rows, seconds for each row), neither negative, with the least relative errors."""
    if len(knots) == 1:
        return 0.5 * seconds[0], 0.5 * seconds[0] / knots[0]
    rows = [(1.0, float(knot)) for knot in knots]
    base, slope = solve_non_negative(rows, seconds, [value**-2 for value in seconds])
    return base, slope


def _make_rising(values: list[float], weights: list[int]) -> list[float]:
    """The closest sequence that never falls: neighbours that fall share their weighted mean, and so on."""
    pools: list[tuple[float, int, int]] = []  # (mean, weight, number of values)
    for value, weight in zip(values, weights, strict=True):
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, other_count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        pools.append((mean, weight, count))
    return [mean for mean, _, count in pools for _ in range(count)]
