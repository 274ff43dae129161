"""The engine for servers: its own thread runs the steps, any event loop waits for outputs. Knows no HTTP, no text."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.engine.core import EngineCore, StepResult
from deepinfer.engine.stream import OutputStream
from deepinfer.errors import CapacityError, ConfigError, EngineDeadError, QueueFullError, RequestError
from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput, TokenConstraint
from deepinfer.request import FinishReason, Request
from deepinfer.sampling_params import SamplingParams
from deepinfer.structured import CompilePool, GrammarCompiler, GrammarSpec, Vocabulary

if TYPE_CHECKING:
    from deepinfer.loader.checkpoint import Checkpoint

logger = logging.getLogger(__name__)

StepListener = Callable[[StepStats], None]
_Delivery = tuple[OutputStream, EngineOutput | EngineDeadError]

_MAX_RETRY_AFTER_SECONDS = 60
_THROUGHPUT_WINDOW_SECONDS = 30.0
_DRAIN_POLL_SECONDS = 0.02


class AsyncEngine:
    """Runs an `EngineCore` in a thread of its own.

    `add_request` and `abort` may be called from any thread that runs an event loop; outputs reach the loop that added
    the request, with at most one wake-up of each loop per step.
    """

    def __init__(
        self,
        core: EngineCore,
        *,
        checkpoint: Checkpoint | None = None,
        make_vocabulary: Callable[[], Vocabulary] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make_vocabulary` is called with the first required form of an output; by default the checkpoint gives it."""
        self.checkpoint = checkpoint
        self._compiler = GrammarCompiler(make_vocabulary or self._make_vocabulary)
        self._compile_pool = CompilePool(self._compiler)
        self._core = core
        self._clock = clock
        self._max_unfinished = core.scheduler.config.max_num_seqs + core.scheduler.config.max_num_waiting
        self._lock = threading.Lock()  # guards the five below
        self._streams: dict[str, OutputStream] = {}
        self._inbox: deque[Request | str] = deque()  # a request to add, or the id of one to abort
        self._undelivered: dict[asyncio.AbstractEventLoop, list[_Delivery]] = {}
        self._dead_error: EngineDeadError | None = None
        self._is_closing = False
        self._is_draining = False
        self._step_start_time: float | None = None
        self._finished_times: deque[float] = deque(maxlen=256)
        self._listeners: list[StepListener] = []
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deepinfer-engine", daemon=True)
        self._thread.start()

    @classmethod
    def from_config(cls, config: EngineConfig) -> AsyncEngine:
        """Open the model, allocate the KV cache and start the loop.

        Raises:
            ConfigError, WeightLoadError: one sentence that says what to do.
        """
        from deepinfer.engine.build import build_engine

        built = build_engine(config)
        return cls(built.core, checkpoint=built.checkpoint)

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the model."""
        return self._core.executor.model_config

    @property
    def max_model_len(self) -> int:
        """Longest prompt + output, in tokens."""
        return self._core.rules.max_model_len

    @property
    def num_unfinished_requests(self) -> int:
        """Requests that wait or run."""
        return len(self._streams)

    @property
    def is_dead(self) -> bool:
        """Whether the loop ended on an error; `dead_error` says which."""
        return self._dead_error is not None

    @property
    def dead_error(self) -> EngineDeadError | None:
        """The error that ended the loop."""
        return self._dead_error

    @property
    def current_step_seconds(self) -> float:
        """How long the step in progress has been running, 0.0 between steps; a health check bounds it."""
        start = self._step_start_time
        return 0.0 if start is None else self._clock() - start

    def add_step_listener(self, listener: StepListener) -> None:
        """Call `listener` in the engine's thread after each step. It must be quick; one that raises is removed."""
        self._listeners.append(listener)

    def compile_grammar(self, spec: GrammarSpec) -> TokenConstraint:
        """Compile the form of an output, or return what an equal one gave. Takes milliseconds to seconds: in an event
        loop await `prepare_grammar` instead.

        Raises:
            RequestError: it is malformed or uses something that is not covered; the message names it.
            ConfigError: the package for it is not installed.
        """
        return self._compiler.compile(spec)

    async def prepare_grammar(self, spec: GrammarSpec) -> TokenConstraint:
        """The same in a thread, with a bound on the time and on how many may wait.

        Raises:
            RequestError: it is malformed, not covered, or too complex; the message names it.
            QueueFullError: too many are being compiled.
            ConfigError: the package for it is not installed.
        """
        return await self._compile_pool.compile(spec)

    def add_request(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int] | memoryview,
        sampling_params: SamplingParams,
        *,
        arrival_time: float | None = None,
        client_key: str = "",
        constraint: TokenConstraint | None = None,
    ) -> OutputStream:
        """Queue a request; iterate over the result with `async for`. Must be called in a running event loop.

        Args:
            request_id: unique among unfinished requests.
            prompt_token_ids: ids as a sequence, or a memoryview of format "I".
            arrival_time: `time.monotonic()` of the arrival at the server, so that times include tokenization.
            client_key: whose request it is, such as a name of an API key; clients share the engine fairly.
            constraint: the form the output must have, from `compile_grammar`.

        Raises:
            RequestError: the request is invalid, or its id is in use.
            QueueFullError: too many requests wait.
            EngineDeadError: the engine has stopped.
            CapacityError: the engine is shutting down.
        """
        loop = asyncio.get_running_loop()
        request = self._core.rules.make_request(
            request_id,
            prompt_token_ids,
            sampling_params,
            arrival_time=self._clock() if arrival_time is None else arrival_time,
            client_key=client_key,
            constraint=constraint,
        )
        stream = OutputStream(request_id, loop, self.abort)
        with self._lock:
            if self._dead_error is not None:
                raise self._dead_error
            if self._is_closing or self._is_draining:
                raise CapacityError("the engine is shutting down and takes no new requests")
            if request_id in self._streams:
                raise RequestError(f"request_id {request_id!r} is in use by an unfinished request", param="request_id")
            if len(self._streams) >= self._max_unfinished:
                raise QueueFullError(
                    f"{len(self._streams)} requests are running or waiting, which is the limit; retry later",
                    retry_after_seconds=self._estimate_retry_after(),
                )
            self._streams[request_id] = stream
            self._inbox.append(request)
        self._wake.set()
        return stream

    def abort(self, request_id: str) -> None:
        """End a request in whatever state it is; its stream gets a last output. Unknown and ended ids are ignored."""
        with self._lock:
            if request_id not in self._streams:
                return
            self._inbox.append(request_id)
        self._wake.set()

    async def drain(self, timeout: float) -> bool:
        """Take no new requests and wait until the unfinished ones end, at most `timeout` seconds, then abort the rest.

        Returns:
            Whether all ended by themselves.
        """
        self._is_draining = True
        deadline = self._clock() + timeout
        while self._streams and not self.is_dead and self._clock() < deadline:
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        with self._lock:
            unfinished = list(self._streams)
        for request_id in unfinished:
            self.abort(request_id)
        return not unfinished

    def close(self) -> None:
        """Stop the loop after the step in progress and release the executor. Waiting streams get EngineDeadError."""
        with self._lock:
            self._is_closing = True
        self._wake.set()
        self._compile_pool.close()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _make_vocabulary(self) -> Vocabulary:
        if self.checkpoint is None:
            raise ConfigError("structured output needs a model with a tokenizer")
        from deepinfer.engine.text import TextCodec

        return TextCodec(self.checkpoint).make_vocabulary(self.model_config)

    # Engine thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        cause: BaseException = CapacityError("the engine was closed")
        try:
            while not self._is_closing:
                self._take_inbox()
                if not self._core.has_work:
                    self._wake.wait()
                    self._wake.clear()
                    continue
                self._step_start_time = self._clock()
                result = self._core.step()
                self._step_start_time = None
                self._deliver(result)
        except BaseException as error:  # whatever it is, nobody may wait for ever
            logger.exception("the engine loop ended")
            cause = error
        self._die(cause)
        self._core.close()

    def _take_inbox(self) -> None:
        while self._inbox:
            item = self._inbox.popleft()
            if isinstance(item, str):
                self._core.abort_request(item)
                continue
            try:
                self._core.add_request(item)
            except RequestError as error:
                refusal = EngineOutput(
                    item.request_id, [], FinishReason.ERROR, error_message=str(error), is_refused=True
                )
                self._deliver(StepResult([refusal], None))

    def _deliver(self, result: StepResult) -> None:
        if result.outputs:
            streams = self._streams
            deliveries: dict[asyncio.AbstractEventLoop, list[_Delivery]] = {}
            with self._lock:
                for output in result.outputs:
                    stream = streams[output.request_id]
                    if output.finish_reason is not None:
                        del streams[output.request_id]
                        self._finished_times.append(self._clock())
                    deliveries.setdefault(stream.loop, []).append((stream, output))
            for loop, items in deliveries.items():
                self._post(loop, items)
        if result.stats is not None:
            for listener in tuple(self._listeners):
                try:
                    listener(result.stats)
                except Exception:
                    logger.exception("a step listener failed and is removed")
                    self._listeners.remove(listener)

    def _post(self, loop: asyncio.AbstractEventLoop, items: list[_Delivery]) -> None:
        """Queue items for a loop; wake it only if no earlier items still wait for it."""
        with self._lock:
            waiting = self._undelivered.get(loop)
            if waiting is not None:
                waiting.extend(items)
                return
            self._undelivered[loop] = items
        try:
            loop.call_soon_threadsafe(self._push_all, loop)
        except RuntimeError:  # the loop is closed: its requests have no reader any more
            with self._lock:
                del self._undelivered[loop]
            for stream, _ in items:
                self.abort(stream.request_id)

    def _die(self, cause: BaseException) -> None:
        error = EngineDeadError(cause)
        with self._lock:
            self._dead_error = error
            streams = list(self._streams.values())
            self._streams.clear()
            self._inbox.clear()
        for stream in streams:
            self._post(stream.loop, [(stream, error)])

    # Event loops --------------------------------------------------------------------------------------------------

    def _push_all(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            items = self._undelivered.pop(loop)
        for stream, item in items:
            stream.push(item)

    def _estimate_retry_after(self) -> int:
        """Seconds until about a tenth of the unfinished requests will have ended at the recent rate."""
        now = self._clock()
        recent = [stamp for stamp in self._finished_times if now - stamp < _THROUGHPUT_WINDOW_SECONDS]
        if len(recent) < 2:
            return 1
        per_second = len(recent) / max(now - recent[0], 1e-3)
        return min(_MAX_RETRY_AFTER_SECONDS, max(1, math.ceil(0.1 * len(self._streams) / per_second)))
