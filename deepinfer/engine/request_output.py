"""Complete results of offline requests, collected step by step."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Protocol

from deepinfer.errors import PromptTooLongError, RequestError
from deepinfer.outputs import EngineOutput, RequestStats, TokenLogprob
from deepinfer.request import FinishReason


class TextDelta(Protocol):
    """What a decoder added to the text; `num_tokens` counts up to and including a token that completed a stop."""

    @property
    def text(self) -> str: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def num_tokens(self) -> int: ...


class TextStream(Protocol):
    """Incremental decoder of one output."""

    def push(self, token_ids: list[int]) -> TextDelta: ...
    def finish(self) -> TextDelta: ...


@dataclass(slots=True, kw_only=True)
class RequestOutput:
    """Result of one prompt.

    Attributes:
        prompt: its text, if it was given as text.
        token_ids: the output, with the token that ended it.
        text: the output as text, up to a stop string.
        finish_reason: "stop", "length", "abort", "error" or "prompt_length_exceeded"; None while it goes on.
        stop_reason: the stop string or token id that ended it.
        logprobs, prompt_logprobs: as asked for.
        num_cached_tokens: prompt tokens found in the prefix cache.
        seed: the seed in use.
        error: why there is no complete output.
    """

    request_id: str
    prompt: str | None
    prompt_token_ids: array[int]
    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: list[TokenLogprob] | None = None
    prompt_logprobs: list[TokenLogprob] | None = None
    num_cached_tokens: int = 0
    seed: int = 0
    stats: RequestStats | None = None
    error: RequestError | None = None

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will come."""
        return self.finish_reason is not None

    def fail(self, error: RequestError) -> None:
        """End with an error."""
        self.error = error
        self.finish_reason = "prompt_length_exceeded" if isinstance(error, PromptTooLongError) else "error"


def add_to_output(result: RequestOutput, output: EngineOutput, stream: TextStream) -> str:
    """Append what one step gave; returns the text that became certain. Ends the result at a stop string."""
    result.num_cached_tokens = output.num_cached_tokens
    result.seed = output.seed
    result.token_ids.extend(output.new_token_ids)
    if output.logprobs is not None:
        result.logprobs = (result.logprobs or []) + output.logprobs
    if output.prompt_logprobs is not None:
        result.prompt_logprobs = output.prompt_logprobs
    delta = stream.push(output.new_token_ids)
    text = delta.text
    if delta.stop is None and output.finish_reason is not None:
        delta = stream.finish()
        text += delta.text
    result.text += text
    if delta.stop is not None:
        del result.token_ids[delta.num_tokens :]
        if result.logprobs is not None:
            del result.logprobs[delta.num_tokens :]
        result.finish_reason, result.stop_reason = FinishReason.STOP, delta.stop
    elif output.error_message is not None:
        result.fail(RequestError(output.error_message))
    else:
        result.finish_reason, result.stop_reason = output.finish_reason, output.stop_token_id
    result.stats = output.stats
    return text
