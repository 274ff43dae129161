"""Penalties on tokens that occurred before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepinfer.sampling_params import SamplingParams

_INITIAL_CAPACITY = 64


class TokenHistory:
    """Distinct tokens of a sequence with their counts in the output, brought up to date token by token."""

    def __init__(self, token_ids: Sequence[int], num_prompt_tokens: int) -> None:
        distinct = np.unique(np.asarray(token_ids[:num_prompt_tokens], np.int64))
        self._num_distinct = distinct.size
        self._ids = np.zeros(max(_INITIAL_CAPACITY, 2 * distinct.size), np.int64)
        self._ids[: distinct.size] = distinct
        self._output_counts = np.zeros(self._ids.size, np.float32)
        self._index_of = {token_id: index for index, token_id in enumerate(distinct.tolist())}
        self._num_counted = num_prompt_tokens

    def apply_penalties_to(self, logits: NDArray[np.float32], token_ids: Sequence[int], params: SamplingParams) -> None:
        """Change `logits` [V] in place: repetition (divide positive logits, multiply others) over prompt and output,
        then frequency per occurrence and presence once over the output."""
        self._count(token_ids)
        ids = self._ids[: self._num_distinct]
        counts = self._output_counts[: self._num_distinct]
        values = logits[ids]
        if params.repetition_penalty != 1.0:
            penalty = np.float32(params.repetition_penalty)
            values = np.where(values > 0, values / penalty, values * penalty)
        values -= np.float32(params.frequency_penalty) * counts
        values -= np.float32(params.presence_penalty) * (counts > 0)
        logits[ids] = values

    def _count(self, token_ids: Sequence[int]) -> None:
        for token_id in token_ids[self._num_counted :]:
            index = self._index_of.get(token_id)
            if index is None:
                index = self._index_of[token_id] = self._num_distinct
                if index == self._ids.size:
                    self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
                    self._output_counts = np.concatenate([self._output_counts, np.zeros_like(self._output_counts)])
                self._ids[index] = token_id
                self._num_distinct += 1
            self._output_counts[index] += 1
        self._num_counted = len(token_ids)
