"""What the sampler knows about one request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepinfer.outputs import TokenMatcher
from deepinfer.sampling.penalties import TokenHistory
from deepinfer.sampling_params import SamplingParams


class SamplingRow:
    """One request, kept by the executor from step to step.

    Attributes:
        params: with `seed` set.
        token_ids: prompt and output so far, a live sequence: the executor appends each sampled token.
        num_prompt_tokens: how many of them are the prompt.
        end_token_ids: ids that end the output.
        needs_only_argmax: whether the token is the argmax of the raw logits and nothing else is asked for.
        is_stateless: whether the token depends on nothing but the raw logits, the parameters and its position.
    """

    __slots__ = (
        "_bias_ids",
        "_bias_values",
        "_end_ids",
        "_has_thought",
        "_history",
        "_matcher",
        "end_token_ids",
        "is_stateless",
        "needs_only_argmax",
        "num_prompt_tokens",
        "params",
        "token_ids",
    )

    def __init__(
        self,
        params: SamplingParams,
        token_ids: Sequence[int],
        num_prompt_tokens: int,
        eos_token_ids: frozenset[int] = frozenset(),
        *,
        matcher: TokenMatcher | None = None,
    ) -> None:
        self.params = params
        self.token_ids = token_ids
        self.num_prompt_tokens = num_prompt_tokens
        self.is_stateless = (
            matcher is None
            and not changes_logits(params)
            and (params.logprobs is None or params.logprobs_mode == "raw")
            and not params.golden_token_ids
            and params.max_thinking_tokens is None
        )
        self.needs_only_argmax = self.is_stateless and params.is_greedy and params.logprobs is None
        self._bias_ids = np.fromiter(params.logit_bias.keys(), np.int64, len(params.logit_bias))
        self._bias_values = np.fromiter(params.logit_bias.values(), np.float32, len(params.logit_bias))
        self.end_token_ids = frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else eos_token_ids)
        self._end_ids = np.array(sorted(self.end_token_ids), np.int64)
        self._matcher = matcher
        self._has_thought = params.max_thinking_tokens is None
        self._history = TokenHistory(token_ids, num_prompt_tokens) if params.has_penalties else None

    @property
    def position(self) -> int:
        """Absolute position of the token to be chosen."""
        return len(self.token_ids)

    @property
    def forced_token_id(self) -> int | None:
        """The token that must come now, whatever the logits say."""
        params = self.params
        index = len(self.token_ids) - self.num_prompt_tokens
        if index < len(params.golden_token_ids) and params.golden_token_ids[index] >= 0:
            return params.golden_token_ids[index]
        if not self._has_thought:
            assert params.max_thinking_tokens is not None
            start_id = params.thinking_start_token_id
            if index < max(params.max_thinking_tokens, start_id is not None):
                return None
            self._has_thought = True
            thought = self.token_ids[self.num_prompt_tokens :]
            if start_id is not None and thought[0] != start_id:
                return None
            if params.thinking_end_token_id not in thought:
                return params.thinking_end_token_id
        return None

    def adjust(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Penalties, logit_bias, then bans, then the required form; `logits` [V] is not changed, and returned as it is
        if nothing applies.

        Raises:
            RequestError: the output so far does not have the required form.
        """
        params = self.params
        mask = None
        if self._matcher is not None:
            mask = self._matcher.compute_mask(self.token_ids[self.num_prompt_tokens :])
        if mask is None and not changes_logits(params):
            return logits
        adjusted = logits.copy()
        if self._history is not None:
            self._history.apply_penalties_to(adjusted, self.token_ids, params)
        if self._bias_ids.size:
            adjusted[self._bias_ids] += self._bias_values
        for word in params.bad_words_token_ids:
            num_before = len(word) - 1
            if num_before == 0 or tuple(self.token_ids[-num_before:]) == word[:-1]:
                adjusted[word[-1]] = -np.inf
        if mask is not None:
            bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")[: adjusted.size]
            adjusted[: bits.size][bits == 0] = -np.inf
            adjusted[bits.size :] = -np.inf
        if len(self.token_ids) - self.num_prompt_tokens < params.min_tokens:
            end_ids = self._end_ids[self._end_ids < adjusted.size]
            end_logits = adjusted[end_ids]
            adjusted[end_ids] = -np.inf
            if mask is not None and adjusted.max() == -np.inf:
                adjusted[end_ids] = end_logits  # a form that is complete has no other way on
        return adjusted


def changes_logits(params: SamplingParams) -> bool:
    """Whether anything is done to the logits before temperature."""
    return bool(params.has_penalties or params.logit_bias or params.min_tokens or params.bad_words_token_ids)
