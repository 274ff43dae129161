"""From what a caller hands over to a valid `Request`. Every bad value is a typed error of this request alone."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepinfer.errors import InvalidSamplingParamsError, PromptTooLongError, RequestError
from deepinfer.outputs import TokenConstraint
from deepinfer.request import Request
from deepinfer.sampling_params import SamplingParams

MAX_REQUEST_ID_CHARS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRules:
    """What a request must satisfy to be computable by one engine.

    Attributes:
        vocab_size: token ids are below it.
        max_model_len: positions of prompt and output that fit both the model and the KV cache.
        eos_token_ids: ids that end an output.
    """

    vocab_size: int
    max_model_len: int
    eos_token_ids: frozenset[int]

    def make_request(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int] | memoryview,
        sampling_params: SamplingParams,
        *,
        arrival_time: float,
        client_key: str = "",
        constraint: TokenConstraint | None = None,
    ) -> Request:
        """Build a request with a seed and a bound on its output.

        Raises:
            RequestError: an id or token id is invalid, or the prompt is empty.
            PromptTooLongError: the prompt leaves no room for output.
            InvalidSamplingParamsError: a parameter does not fit this model.
        """
        if not isinstance(request_id, str) or not 0 < len(request_id) <= MAX_REQUEST_ID_CHARS:
            raise RequestError(
                f"request_id must be a string of 1 to {MAX_REQUEST_ID_CHARS} characters", param="request_id"
            )
        prompt = self._checked_prompt(prompt_token_ids)
        params = self._checked_params(sampling_params)
        room = self.max_model_len - len(prompt)
        wants_output = params.max_tokens != 0
        if room < (1 if wants_output else 0):
            raise PromptTooLongError(len(prompt), self.max_model_len)
        return Request(
            request_id=request_id,
            prompt_token_ids=prompt,
            sampling_params=params,
            eos_token_ids=self.eos_token_ids,
            arrival_time=arrival_time,
            client_key=client_key,
            constraint=constraint,
            max_output_tokens=room if params.max_tokens is None else min(params.max_tokens, room),
        )

    def _checked_prompt(self, prompt_token_ids: Sequence[int] | memoryview) -> array[int]:
        try:
            prompt = array("I")
            ids = prompt_token_ids
            if isinstance(ids, memoryview) and ids.format == "I" and ids.contiguous:
                prompt.frombytes(ids.cast("B"))
            else:
                prompt.extend(iter(ids))
        except (TypeError, OverflowError, ValueError):
            raise RequestError(
                f"prompt must be a sequence of token ids in [0, {self.vocab_size})", param="prompt"
            ) from None
        if not prompt:
            raise RequestError("prompt is empty; give at least one token", param="prompt")
        largest = int(np.frombuffer(prompt, np.uint32).max())
        if largest >= self.vocab_size:
            raise RequestError(
                f"prompt holds token id {largest}, but the model's vocabulary ends at {self.vocab_size - 1}",
                param="prompt",
            )
        return prompt

    def _checked_params(self, params: SamplingParams) -> SamplingParams:
        for name, token_ids in (
            ("logit_bias", params.logit_bias),
            ("bad_words_token_ids", [token_id for word in params.bad_words_token_ids for token_id in word]),
            ("golden_token_ids", [token_id for token_id in params.golden_token_ids if token_id != -1]),
            ("thinking_end_token_id", [] if params.max_thinking_tokens is None else [params.thinking_end_token_id]),
        ):
            for token_id in token_ids:
                if token_id is not None and not 0 <= token_id < self.vocab_size:
                    raise InvalidSamplingParamsError(
                        f"{name} names token id {token_id}, but the model's vocabulary ends at {self.vocab_size - 1}",
                        param=name,
                    )
        if params.seed is None:
            return replace(params, seed=secrets.randbits(64))
        return params
