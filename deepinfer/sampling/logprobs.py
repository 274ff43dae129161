"""Log probabilities of raw logits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepinfer.outputs import TokenLogprob
from deepinfer.sampling.truncation import rank_top

# Stands for a token that cannot be drawn but was forced: JSON has no infinity.
MIN_LOGPROB = -9999.0


def compute_token_logprob(logits: NDArray[np.float32], token_id: int, num_top: int) -> TokenLogprob:
    """Log probability and rank of one token, and the `num_top` most likely ones, of a row [V]."""
    normaliser = compute_logsumexp(logits)
    value = logits[token_id]
    num_better = np.count_nonzero(logits > value) + np.count_nonzero(logits[:token_id] == value)
    top: tuple[tuple[int, float], ...] = ()
    if num_top:
        ids = rank_top(logits, min(num_top, logits.size))
        ids = ids[np.isfinite(logits[ids])]
        top = tuple(zip(ids.tolist(), (logits[ids].astype(np.float64) - normaliser).tolist(), strict=True))
    return TokenLogprob(token_id, max(float(value) - normaliser, MIN_LOGPROB), int(num_better) + 1, top)


def compute_prompt_logprobs(logits: NDArray[np.float32], token_ids: Sequence[int], num_top: int) -> list[TokenLogprob]:
    """Entries for consecutive positions.

    Args:
        logits: [N, V]; row i was computed at the position before token_ids[i].
        token_ids: the N tokens that stand at the positions.
    """
    return [compute_token_logprob(row, token_id, num_top) for row, token_id in zip(logits, token_ids, strict=True)]


def compute_logsumexp(logits: NDArray[np.float32]) -> float:
    """log(sum(exp(logits))) of a row [V]; the sum is accumulated in float64."""
    best = logits.max()
    return float(best) + math.log(float(np.exp(logits - best).sum(dtype=np.float64)))
