"""From logits on the host to one token for each row. Numpy only; a row's result depends on nothing but the row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deepinfer.errors import RequestError
from deepinfer.outputs import TokenLogprob
from deepinfer.sampling.logprobs import compute_token_logprob
from deepinfer.sampling.random import (
    compute_key,
    compute_noise,
    find_hash_bound,
    hash_into,
    make_counters,
    noise_from_hash,
)
from deepinfer.sampling.row import SamplingRow
from deepinfer.sampling.truncation import keep_min_p, keep_top_p, rank_top, to_float32
from deepinfer.sampling_params import SamplingParams

NO_TOKEN = -1
_NEAR_DISTANCE = 8.0


@dataclass(slots=True)
class SampledRows:
    """One entry for each row.

    Attributes:
        token_ids: the chosen token, NO_TOKEN for a row that failed.
        logprobs: of the chosen token by the raw logits, where asked for.
        errors: row index -> why it failed.
    """

    token_ids: list[int]
    logprobs: list[TokenLogprob | None]
    errors: dict[int, str] = field(default_factory=dict)


class Sampler:
    """Chooses tokens over a vocabulary of fixed size. Holds scratch memory, no state: one thread uses it at a time."""

    def __init__(self, vocab_size: int) -> None:
        self._counters = make_counters(vocab_size)
        self._hashes = np.empty(vocab_size, np.uint64)
        self._scratch = np.empty(vocab_size, np.uint64)

    def sample(self, logits: NDArray[np.float32], rows: Sequence[SamplingRow]) -> SampledRows:
        """Choose one token for each row.

        Args:
            logits: float32 [R, V]; not changed.
            rows: R requests. A row whose logits hold NaN or +infinity, or nothing finite, fails alone.
        """
        best_ids = logits.argmax(axis=1)  # the position of a NaN if there is one
        is_valid = np.isfinite(logits[np.arange(len(rows)), best_ids])
        result = SampledRows(best_ids.tolist(), [None] * len(rows))
        for index, row in enumerate(rows):
            if not is_valid[index]:
                self._fail(result, index, "the model computed logits that are not finite")
            elif not row.needs_only_argmax:
                self._sample_row(result, index, logits[index], row)
        return result

    def _sample_row(self, result: SampledRows, index: int, logits: NDArray[np.float32], row: SamplingRow) -> None:
        params = row.params
        forced_token_id = row.forced_token_id
        try:
            adjusted = row.adjust(logits)
        except RequestError as error:
            self._fail(result, index, str(error))
            return
        best_id = result.token_ids[index] if adjusted is logits else int(adjusted.argmax())
        best = float(adjusted[best_id])
        is_possible = math.isfinite(best)
        candidates = None if params.is_greedy or not is_possible else find_candidates(adjusted, params)
        if forced_token_id is not None:
            token_id = forced_token_id
        elif not is_possible:
            self._fail(result, index, "logit_bias, bad_words, min_tokens and grammar together forbid every token")
            return
        elif params.is_greedy:
            token_id = best_id
        else:
            assert params.seed is not None
            key = compute_key(params.seed, row.position)
            if candidates is None:
                token_id = self._draw_from_all(adjusted, best, params.temperature, key)
            else:
                token_id = self.draw(candidates, adjusted[candidates], best, params.temperature, key)
        result.token_ids[index] = token_id
        if params.logprobs is not None:
            shown = logits
            if params.logprobs_mode == "processed" and is_possible:
                shown = make_processed_logits(adjusted, candidates, params.temperature)
            result.logprobs[index] = compute_token_logprob(shown, token_id, params.logprobs)

    def draw(
        self, token_ids: NDArray[np.int64], logits: NDArray[np.float32], best: float, temperature: float, key: int
    ) -> int:
        """The candidate with the largest score (see `random`); `best` is the largest logit of the row."""
        noise = compute_noise(self._counters[token_ids], key)
        return _choose(token_ids, _scale(logits, best, temperature) + noise)

    def _draw_from_all(self, logits: NDArray[np.float32], best: float, temperature: float, key: int) -> int:
        """`draw` over the whole row, computing logarithms only for tokens that can win."""
        threshold = to_float32(best - _NEAR_DISTANCE * temperature)
        is_near = logits >= threshold
        ids = np.flatnonzero(is_near)
        scores = _scale(logits[ids], best, temperature) + compute_noise(self._counters[ids], key)
        # All other tokens lie below the threshold, so they need more noise than this to reach the best score so far.
        bound = find_hash_bound(float(scores.max()) + (best - float(threshold)) / temperature)
        hashes = hash_into(self._counters, key, self._hashes, self._scratch)
        far = np.flatnonzero((hashes >= np.uint64(bound)) & ~is_near)
        if far.size:
            far_scores = _scale(logits[far], best, temperature) + noise_from_hash(hashes[far])
            ids, scores = np.concatenate([ids, far]), np.concatenate([scores, far_scores])
        return _choose(ids, scores)

    @staticmethod
    def _fail(result: SampledRows, index: int, message: str) -> None:
        result.token_ids[index] = NO_TOKEN
        result.errors[index] = message


def find_candidates(logits: NDArray[np.float32], params: SamplingParams) -> NDArray[np.int64] | None:
    """Ids that top_k, then top_p, then min_p leave of a row [V]; None if they leave all."""
    candidates = None
    if 0 < params.top_k < logits.size:
        candidates = rank_top(logits, params.top_k)
    if params.top_p < 1.0:
        candidates = keep_top_p(logits, candidates, params.top_p, params.temperature)
    if params.min_p > 0.0:
        candidates = keep_min_p(logits, candidates, params.min_p, params.temperature)
    return candidates


def make_processed_logits(
    logits: NDArray[np.float32], candidates: NDArray[np.int64] | None, temperature: float
) -> NDArray[np.float32]:
    """What is drawn from: logits / temperature of the candidates, minus infinity for the rest; greedy counts as 1."""
    with np.errstate(over="ignore"):
        scaled = _scale(logits, float(logits.max()), temperature or 1.0).astype(np.float32)
    if candidates is None:
        return scaled
    processed = np.full_like(scaled, -np.inf)
    processed[candidates] = scaled[candidates]
    return processed


def _scale(logits: NDArray[np.float32], best: float, temperature: float) -> NDArray[np.float64]:
    # A very small temperature sends all but the best to minus infinity, which is what it means.
    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = (logits.astype(np.float64) - best) / temperature
    return scaled


def _choose(token_ids: NDArray[np.int64], scores: NDArray[np.float64]) -> int:
    return int(token_ids[scores == scores.max()].min())
