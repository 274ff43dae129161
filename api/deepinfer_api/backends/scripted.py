"""A backend that replays given token ids, for tests of everything above it. Knows no model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from deepinfer.errors import ConfigError, PromptTooLongError, QueueFullError, RequestError
from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput, RequestStats, TokenConstraint, TokenLogprob
from deepinfer.request import FinishReason
from deepinfer.sampling_params import SamplingParams
from deepinfer.structured import CompilePool, GrammarSpec
from deepinfer_api.backends.base import BackendLoad

ScriptStep = Sequence[int] | BaseException | asyncio.Event | float
"""One step of a script: ids to emit together, an error to raise, an event to wait for, or seconds to sleep."""

Script = Callable[["ScriptedRequest"], Iterable[ScriptStep]]
"""Gives the steps of a request."""


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """What a script may look at."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling_params: SamplingParams
    arrival_time: float
    client_key: str = ""
    constraint: TokenConstraint | None = None


@dataclass(slots=True)
class ScriptedBackend:
    """Replays the steps that `script` gives for each request.

    Attributes:
        script: steps of a request.
        eos_token_ids: ids that end an output unless `ignore_eos`.
        max_model_len: context length; longer prompts are refused as the engine does.
        max_num_waiting: admitted unfinished requests; one more is refused with QueueFullError. None is no bound.
        num_cached_tokens: what it reports as found in the prefix cache.
        compile_pool: compiles the forms of outputs; a script has to keep to them by itself.
        requests: every admitted request.
        aborted: ids of requests that were aborted before their last token, in order.
        active: ids of unfinished requests.
    """

    script: Script
    eos_token_ids: frozenset[int] = frozenset()
    max_model_len: int = 4096
    max_num_waiting: int | None = None
    num_cached_tokens: int = 0
    is_dead: bool = False
    current_step_seconds: float = 0.0
    compile_pool: CompilePool | None = None
    requests: list[ScriptedRequest] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    active: dict[str, asyncio.Event] = field(default_factory=dict)
    listeners: list[Callable[[StepStats], None]] = field(default_factory=list)

    async def prepare_grammar(self, spec: GrammarSpec) -> TokenConstraint:
        """See `GenerationBackend.prepare_grammar`."""
        if self.compile_pool is None:
            raise ConfigError("this backend replays scripts and compiles no forms")
        return await self.compile_pool.compile(spec)

    def generate(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        sampling_params: SamplingParams,
        *,
        arrival_time: float,
        client_key: str = "",
        constraint: TokenConstraint | None = None,
    ) -> AsyncIterator[EngineOutput]:
        """See `GenerationBackend.generate`."""
        if request_id in self.active:
            raise RequestError(f"request id {request_id!r} is in use", param=None)
        if len(prompt_token_ids) >= self.max_model_len:
            raise PromptTooLongError(len(prompt_token_ids), self.max_model_len)
        if self.max_num_waiting is not None and len(self.active) >= self.max_num_waiting:
            raise QueueFullError(f"{len(self.active)} requests are waiting; try again later", retry_after_seconds=2)
        request = ScriptedRequest(
            request_id, tuple(prompt_token_ids), sampling_params, arrival_time, client_key, constraint
        )
        self.requests.append(request)
        is_aborted = self.active[request_id] = asyncio.Event()
        return self._replay(request, is_aborted)

    async def _replay(self, request: ScriptedRequest, is_aborted: asyncio.Event) -> AsyncIterator[EngineOutput]:
        params = request.sampling_params
        room = self.max_model_len - len(request.prompt_token_ids)
        limit = room if params.max_tokens is None else min(params.max_tokens, room)
        num_output_tokens = 0
        has_ended = False
        try:
            if params.max_tokens == 0:
                yield self._output(request, [], FinishReason.LENGTH, None, 0)
                return
            for step in self.script(request):
                if is_aborted.is_set():
                    return
                match step:
                    case BaseException():
                        raise step
                    case asyncio.Event():
                        waits = [asyncio.create_task(e.wait()) for e in (step, is_aborted)]
                        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                        for wait in waits:
                            wait.cancel()
                        continue
                    case float():
                        await asyncio.sleep(step)
                        continue
                    case _:
                        new_token_ids = list(step)[: limit - num_output_tokens]
                stop_token_id = None
                if not params.ignore_eos:
                    for position, token_id in enumerate(new_token_ids):
                        if token_id in self.eos_token_ids or token_id in params.stop_token_ids:
                            stop_token_id, new_token_ids = token_id, new_token_ids[: position + 1]
                            break
                num_output_tokens += len(new_token_ids)
                reason = FinishReason.STOP if stop_token_id is not None else None
                if reason is None and num_output_tokens >= limit:
                    reason = FinishReason.LENGTH
                has_ended = reason is not None
                yield self._output(request, new_token_ids, reason, stop_token_id, num_output_tokens)
                if reason is not None:
                    return
                await asyncio.sleep(0)
            has_ended = True
            yield self._output(request, [], FinishReason.STOP, None, num_output_tokens)
        except (asyncio.CancelledError, GeneratorExit):
            # Whoever stops listening before the end has aborted, like with the engine's streams.
            if not has_ended:
                self.abort(request.request_id)
            raise
        finally:
            if self.active.get(request.request_id) is is_aborted:
                del self.active[request.request_id]

    def _output(
        self,
        request: ScriptedRequest,
        new_token_ids: list[int],
        reason: FinishReason | None,
        stop_token_id: int | None,
        num_output_tokens: int,
    ) -> EngineOutput:
        params = request.sampling_params
        prompt = request.prompt_token_ids
        is_first = num_output_tokens == len(new_token_ids)
        return EngineOutput(
            request_id=request.request_id,
            new_token_ids=new_token_ids,
            finish_reason=reason,
            stop_token_id=stop_token_id,
            logprobs=None if params.logprobs is None else [_logprob(i, params.logprobs) for i in new_token_ids],
            prompt_logprobs=[_logprob(i, params.prompt_logprobs) for i in prompt[1:]]
            if params.prompt_logprobs is not None and is_first
            else None,
            num_cached_tokens=min(self.num_cached_tokens, len(prompt)),
            seed=params.seed or 0,
            stats=None
            if reason is None
            else RequestStats(
                arrival_time=request.arrival_time,
                queue_seconds=0.001,
                prefill_seconds=0.002,
                decode_seconds=max(0.0, time.monotonic() - request.arrival_time),
                num_prompt_tokens=len(prompt),
                num_cached_tokens=min(self.num_cached_tokens, len(prompt)),
                num_output_tokens=num_output_tokens,
                num_preemptions=0,
            ),
        )

    def abort(self, request_id: str) -> None:
        """See `GenerationBackend.abort`."""
        is_aborted = self.active.pop(request_id, None)
        if is_aborted is not None:
            is_aborted.set()
            self.aborted.append(request_id)

    def load(self) -> BackendLoad:
        """See `GenerationBackend.load`."""
        return BackendLoad(len(self.active), 0)

    def add_step_listener(self, listener: Callable[[StepStats], None]) -> None:
        """See `GenerationBackend.add_step_listener`; a test calls the listeners itself."""
        self.listeners.append(listener)

    async def close(self) -> None:
        """End everything."""
        for request_id in list(self.active):
            self.abort(request_id)


def _logprob(token_id: int, num_top: int) -> TokenLogprob:
    """A log probability that depends on the token alone, so that tests can predict it."""
    logprob = -((token_id % 7) + 1) / 8
    top = tuple((token_id + i, logprob - i) for i in range(num_top))
    return TokenLogprob(token_id=token_id, logprob=logprob, rank=1, top=top)
