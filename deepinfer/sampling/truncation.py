"""Which tokens stay candidates: top-k, top-p, min-p. Each works on one row; equal logits rank by token id."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Logits within these distances of the best are tried first: far fewer than the vocabulary, and nearly always enough.
_DISTANCES = (4.0, 8.0, 16.0)
_SORT_LIMIT = 4096
_LOWEST_FLOAT32 = float(np.finfo(np.float32).min)


def rank_top(logits: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Ids of the `count` largest logits of a row [V], best first, lower id first among equals."""
    size = logits.size
    if count == 1:
        return np.array([logits.argmax()])
    ids = np.arange(size)
    if count < size:
        best = logits.max()
        for distance in _DISTANCES:
            ids = np.flatnonzero(logits >= best - np.float32(distance))
            if ids.size >= count:
                break
        if ids.size < count or ids.size > max(_SORT_LIMIT, 4 * count):
            threshold = np.partition(logits, size - count)[size - count]
            ids = np.flatnonzero(logits >= threshold)
    order = np.argsort(-logits[ids], kind="stable")[:count]
    return ids[order]


def keep_top_p(
    logits: NDArray[np.float32], ranked: NDArray[np.int64] | None, top_p: float, temperature: float
) -> NDArray[np.int64]:
    """Ids whose exclusive cumulative probability, best first, is < top_p; at least one.

    Args:
        logits: a row [V].
        ranked: candidates, best first, among which probabilities are taken; None for the whole row.
    """
    best = float(logits.max())
    if ranked is not None:
        weights = _weights(logits[ranked], best, temperature)
        return ranked[: _count_top_p(weights, top_p * float(weights.sum()))]
    needed = top_p * float(_weights(logits, best, temperature).sum())
    for distance in (*_DISTANCES, math.inf):
        ids = np.flatnonzero(logits >= to_float32(best - distance * temperature))
        weights = _weights(logits[ids], best, temperature)
        if float(weights.sum()) >= needed or ids.size == logits.size:
            break
    order = np.argsort(-logits[ids], kind="stable")
    return ids[order[: _count_top_p(weights[order], needed)]]


def keep_min_p(
    logits: NDArray[np.float32], candidates: NDArray[np.int64] | None, min_p: float, temperature: float
) -> NDArray[np.int64]:
    """Ids at least min_p times as likely as the best of the row [V], in the order of `candidates` (None: of ids)."""
    bound = to_float32(float(logits.max()) + math.log(min_p) * temperature)
    if candidates is None:
        return np.flatnonzero(logits >= bound)
    return candidates[logits[candidates] >= bound]


def _weights(logits: NDArray[np.float32], best: float, temperature: float) -> NDArray[np.float64]:
    """Probabilities up to a factor: exp((logit - best) / temperature), float64."""
    with np.errstate(over="ignore", under="ignore"):
        weights: NDArray[np.float64] = np.exp((logits.astype(np.float64) - best) / temperature)
    return weights


def to_float32(value: float) -> np.float32:
    """Nearest float32 number; what is too low for one becomes minus infinity."""
    return np.float32(value) if value > _LOWEST_FLOAT32 else np.float32(-np.inf)


def _count_top_p(weights: NDArray[np.float64], needed: float) -> int:
    exclusive = np.cumsum(weights) - weights
    return max(1, int(np.count_nonzero(exclusive < needed)))
