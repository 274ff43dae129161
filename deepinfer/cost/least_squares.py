"""Non-negative least squares for a handful of unknowns. Pure Python: importing it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

_SINGULAR = 1e-12


def solve_non_negative(
    rows: Sequence[Sequence[float]], targets: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """x >= 0 that minimises sum of weight * (row . x - target)^2.

    The minimum is an unconstrained one over the unknowns that are not zero. Mostly all are; otherwise every set of
    unknowns is tried: exact, and quick enough for up to six or so.
    """
    size = len(rows[0])
    # Columns are scaled to length 1: their units differ by many orders of magnitude.
    scales = [
        sum(weight * row[column] ** 2 for row, weight in zip(rows, weights, strict=True)) ** 0.5 or 1.0
        for column in range(size)
    ]
    gram = [[0.0] * size for _ in range(size)]
    moments = [0.0] * size
    for row, target, weight in zip(rows, targets, weights, strict=True):
        scaled = [value / scale for value, scale in zip(row, scales, strict=True)]
        for i in range(size):
            moments[i] += weight * scaled[i] * target
            for j in range(size):
                gram[i][j] += weight * scaled[i] * scaled[j]
    everything = _solve(gram, moments)
    if everything is not None and min(everything) >= 0.0:
        return [value / scale for value, scale in zip(everything, scales, strict=True)]
    best, best_gain = [0.0] * size, 0.0
    for count in range(1, size):
        for support in combinations(range(size), count):
            part = _solve([[gram[i][j] for j in support] for i in support], [moments[i] for i in support])
            if part is None or min(part) < 0.0:
                continue
            gain = sum(moments[i] * value for i, value in zip(support, part, strict=True))
            if gain > best_gain:
                best_gain = gain
                best = [0.0] * size
                for i, value in zip(support, part, strict=True):
                    best[i] = value / scales[i]
    return best


def _solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gaussian elimination with pivoting; None for a matrix that is singular in float64."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        if abs(rows[pivot][column]) < _SINGULAR:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, size):
            factor = rows[i][column] / rows[column][column]
            for j in range(column, size + 1):
                rows[i][j] -= factor * rows[column][j]
    solution = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * solution[j] for j in range(i + 1, size))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution
