"""Engine outputs -> text, for all outputs of one HTTP request. Knows no protocol and no socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from deepinfer.errors import EngineError, RequestAbortedError, RequestError
from deepinfer.outputs import EngineOutput, RequestStats, TokenLogprob
from deepinfer.request import FinishReason
from deepinfer_api.backends.base import GenerationBackend
from deepinfer_api.codec import EncodedPrompt, TextStream
from deepinfer_api.reasoning import ReasoningSplit, ThinkingStage
from deepinfer_api.telemetry import ServerMetrics
from deepinfer_api.usage import Timings, Usage


class GenerationError(EngineError):
    """The engine ended one output with an error of that request alone."""


@dataclass(slots=True)
class Piece:
    """What became final by one step of one output.

    Attributes:
        text: new text, maybe empty.
        token_ids: tokens whose text is now out, in order.
        logprobs: one entry for each of them, if asked for.
        is_last: whether the output is complete; `Choice.finish_reason` is then set.
        reasoning: new text of the thinking before the answer, maybe empty.
        reasoning_token_ids: its tokens, markers included.
    """

    text: str
    token_ids: list[int]
    logprobs: list[TokenLogprob] | None
    is_last: bool
    reasoning: str = ""
    reasoning_token_ids: Sequence[int] = ()


@dataclass(slots=True, eq=False)
class Choice:
    """One output on its way from ids to text.

    Attributes:
        index: position in the answer.
        request_id: id in the engine.
        prompt: its prompt.
        outputs: what the engine gives.
        text_stream: decoder and stop matcher of this output.
        reasoning: takes the thinking out of the output; None where there is none.
        shows_stop_token: whether the text of a stop token is part of the output.
        num_output_tokens: tokens that count, up to the one that completed a stop string.
        finish_reason: None while it runs.
        stop: the stop string or stop token id that ended it, if one did.
        prompt_logprobs: entries for prompt positions 1.., if asked for.
    """

    index: int
    request_id: str
    prompt: EncodedPrompt
    outputs: AsyncIterator[EngineOutput]
    text_stream: TextStream
    reasoning: ReasoningSplit | None = None
    shows_stop_token: bool = False
    num_output_tokens: int = 0
    num_cached_tokens: int = 0
    finish_reason: FinishReason | None = None
    stop: str | int | None = None
    prompt_logprobs: list[TokenLogprob] | None = None
    stats: RequestStats | None = None
    first_token_time: float | None = None
    last_token_time: float | None = None
    has_engine_finished: bool = False
    _num_released_tokens: int = 0
    _held_token_ids: list[int] = field(default_factory=list)
    _held_logprobs: list[TokenLogprob] | None = None

    def push(self, output: EngineOutput) -> Piece:
        """Take one engine output.

        Raises:
            RequestError: the engine refused the request.
            GenerationError: the engine gave up on this output.
            RequestAbortedError: something other than this generation ended it.
        """
        reason = output.finish_reason
        if reason is not None:
            self.has_engine_finished = True
            self.stats = output.stats
            if output.is_refused:
                raise RequestError(output.error_message or "the engine refused the request")
            if reason is FinishReason.ERROR:
                raise GenerationError(output.error_message or "the engine could not continue this output")
            if reason is FinishReason.ABORT:
                raise RequestAbortedError("the request was aborted by the server")
        if output.prompt_logprobs is not None:
            self.prompt_logprobs = output.prompt_logprobs
        self.num_cached_tokens = output.num_cached_tokens
        token_ids, logprobs = output.new_token_ids, output.logprobs
        num_hidden = 0
        if output.stop_token_id is not None:
            self.stop = output.stop_token_id
            if not self.shows_stop_token:
                num_hidden = 1
                token_ids = token_ids[:-1]
                logprobs = None if logprobs is None else logprobs[:-1]
        thought, thought_ids = "", list[int]()
        if self.reasoning is not None and self.reasoning.stage is not ThinkingStage.OFF:
            thought, num_thought = self.reasoning.take(token_ids, is_last=reason is not None)
            thought_ids, token_ids = token_ids[:num_thought], token_ids[num_thought:]
            logprobs = None if logprobs is None else logprobs[num_thought:]
        num_thought = self.num_reasoning_tokens
        delta = self.text_stream.push(token_ids)
        text = delta.text
        if delta.stop is None and reason is not None:
            delta = self.text_stream.finish()
            text += delta.text
        if delta.stop is None:
            self.num_output_tokens = num_thought + delta.num_tokens + num_hidden
        else:
            reason = FinishReason.STOP
            self.stop = delta.stop
            self.num_output_tokens = num_thought + delta.num_tokens
        self.finish_reason = reason
        num_released = delta.num_released_tokens - self._num_released_tokens
        self._num_released_tokens = delta.num_released_tokens
        if not self._held_token_ids and num_released == len(token_ids):
            return Piece(text, token_ids, logprobs, reason is not None, thought, thought_ids)
        piece = self._release(text, token_ids, logprobs, num_released)
        piece.reasoning, piece.reasoning_token_ids = thought, thought_ids
        return piece

    @property
    def num_reasoning_tokens(self) -> int:
        """Tokens of the thinking so far."""
        return 0 if self.reasoning is None else self.reasoning.num_tokens

    def _release(
        self, text: str, token_ids: list[int], logprobs: list[TokenLogprob] | None, num_released: int
    ) -> Piece:
        """Pair the text with its tokens while the text of later ones is still held back."""
        held = self._held_token_ids
        held.extend(token_ids)
        released, self._held_token_ids = held[:num_released], held[num_released:]
        released_logprobs = None
        if logprobs is not None or self._held_logprobs:
            entries = (self._held_logprobs or []) + (logprobs or [])
            released_logprobs, self._held_logprobs = entries[:num_released], entries[num_released:]
        return Piece(text, released, released_logprobs, self.finish_reason is not None)


@dataclass(slots=True, eq=False)
class Generation:
    """All outputs of one HTTP request.

    Attributes:
        choices: the outputs; those of one prompt stand together.
        num_choices_per_prompt: how many outputs each prompt has.
        arrival_time: `time.monotonic()` when the request reached the server.
    """

    choices: Sequence[Choice]
    num_choices_per_prompt: int
    arrival_time: float
    backend: GenerationBackend
    metrics: ServerMetrics

    async def pieces(self) -> AsyncGenerator[tuple[Choice, Piece], None]:
        """Everything that becomes final, in order for each output.

        Leaving the iteration early aborts what still runs.

        Raises:
            EngineError: the engine failed, for one output or as a whole.
        """
        try:
            if len(self.choices) == 1:
                choice = self.choices[0]
                async for output in choice.outputs:
                    piece = self._push(choice, output)
                    yield choice, piece
                    if piece.is_last:
                        return
                raise GenerationError("the engine ended the output without a reason")
            async with aclosing(_merge(self.choices)) as merged:
                async for choice, output in merged:
                    if choice.finish_reason is None:
                        piece = self._push(choice, output)
                        yield choice, piece
        finally:
            self.abort()
            for choice in self.choices:
                if isinstance(choice.outputs, AsyncGenerator):
                    await choice.outputs.aclose()

    def _push(self, choice: Choice, output: EngineOutput) -> Piece:
        now = time.monotonic()
        metrics = self.metrics
        num_new = len(output.new_token_ids)
        if num_new:
            if choice.last_token_time is None:
                choice.first_token_time = now
                metrics.time_to_first_token.observe(now - self.arrival_time)
            else:
                metrics.inter_token_latency.observe((now - choice.last_token_time) / num_new, num_new)
            choice.last_token_time = now
        begin = time.perf_counter()
        piece = choice.push(output)
        metrics.codec_stream_push.observe(time.perf_counter() - begin)
        if choice.finish_reason is not None and not choice.has_engine_finished:
            self.backend.abort(choice.request_id)
            choice.has_engine_finished = True
        return piece

    def abort(self) -> None:
        """End in the engine whatever has not ended there."""
        for choice in self.choices:
            if not choice.has_engine_finished:
                choice.has_engine_finished = True
                self.backend.abort(choice.request_id)

    def usage(self) -> Usage:
        """Counts so far."""
        first_choices = self.choices[:: self.num_choices_per_prompt]
        return Usage(
            num_prompt_tokens=sum(len(choice.prompt.token_ids) for choice in first_choices),
            num_output_tokens=sum(choice.num_output_tokens for choice in self.choices),
            num_cached_tokens=sum(choice.num_cached_tokens for choice in first_choices),
            num_reasoning_tokens=sum(choice.num_reasoning_tokens for choice in self.choices),
        )

    def timings(self) -> Timings:
        """Times so far; with several outputs, prompt counts are summed and spans are those of the slowest."""
        usage = self.usage()
        queue, prefill, decode = 0.0, 0.0, 0.0
        stats = [choice.stats for choice in self.choices if choice.stats is not None]
        for choice in self.choices:
            if choice.first_token_time is None or choice.last_token_time is None:
                continue
            until_first = choice.first_token_time - self.arrival_time
            waited = choice.stats.queue_seconds if choice.stats is not None else 0.0
            queue = max(queue, waited)
            prefill = max(prefill, until_first - waited)
            decode = max(decode, choice.last_token_time - choice.first_token_time)
        return Timings(
            num_cached_tokens=usage.num_cached_tokens,
            num_computed_prompt_tokens=usage.num_prompt_tokens - usage.num_cached_tokens,
            prefill_seconds=prefill,
            num_output_tokens=usage.num_output_tokens,
            decode_seconds=decode,
            queue_seconds=queue,
            num_draft_tokens=sum(each.num_draft_tokens for each in stats),
            num_accepted_tokens=sum(each.num_accepted_tokens for each in stats),
        )


async def _merge(choices: Sequence[Choice]) -> AsyncGenerator[tuple[Choice, EngineOutput], None]:
    """Outputs of several iterators as they come; the first error ends all."""
    ready: asyncio.Queue[tuple[Choice, EngineOutput | BaseException | None]] = asyncio.Queue()

    async def drain(choice: Choice) -> None:
        try:
            async for output in choice.outputs:
                ready.put_nowait((choice, output))
                if output.finish_reason is not None:
                    break
        except Exception as error:
            ready.put_nowait((choice, error))
        else:
            ready.put_nowait((choice, None))

    tasks = [asyncio.create_task(drain(choice)) for choice in choices]
    try:
        num_open = len(tasks)
        while num_open:
            choice, item = await ready.get()
            if isinstance(item, EngineOutput):
                yield choice, item
                continue
            num_open -= 1
            if choice.finish_reason is None:
                raise item or GenerationError("the engine ended the output without a reason")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
