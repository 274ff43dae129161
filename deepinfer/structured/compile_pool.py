"""Compiles grammars in threads of its own, so that neither an event loop nor the engine waits. Knows no requests."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from deepinfer.errors import GrammarError, QueueFullError
from deepinfer.structured.grammar import CompiledGrammar, GrammarCompiler
from deepinfer.structured.spec import GrammarSpec

NUM_THREADS: Final = 2
MAX_PENDING: Final = 64
TIMEOUT_SECONDS: Final = 10.0
_RETRY_AFTER_SECONDS: Final = 2


class CompilePool:
    """Equal specifications that come while one of them is being compiled share the work."""

    def __init__(
        self, compiler: GrammarCompiler, *, max_pending: int = MAX_PENDING, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._compiler = compiler
        self._max_pending = max_pending
        self._timeout_seconds = timeout_seconds
        self._threads: ThreadPoolExecutor | None = None  # started with the first grammar
        self._pending: dict[GrammarSpec, Future[CompiledGrammar]] = {}
        self._lock = threading.Lock()

    async def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        """The compiled grammar of a specification; at once if it is known.

        Raises:
            GrammarError: it is malformed, not covered, or too complex to be compiled in time.
            QueueFullError: too many others are being compiled.
            ConfigError: the package for it is not installed, or the model has no usable vocabulary.
        """
        known = self._compiler.find(spec)
        if known is not None:
            return known
        future = asyncio.wrap_future(self._submit(spec))
        try:
            # The thread cannot be stopped, so the future is left alone: its result serves whoever asks again.
            return await asyncio.wait_for(asyncio.shield(future), self._timeout_seconds)
        except TimeoutError:
            future.add_done_callback(_forget_failure)
            raise GrammarError(
                spec.kind, f"takes more than {self._timeout_seconds:g} s to compile; make it simpler"
            ) from None

    def _submit(self, spec: GrammarSpec) -> Future[CompiledGrammar]:
        with self._lock:
            future = self._pending.get(spec)
            if future is not None:
                return future
            if len(self._pending) >= self._max_pending:
                raise QueueFullError(
                    f"{len(self._pending)} grammars are being compiled, which is the limit; retry later",
                    retry_after_seconds=_RETRY_AFTER_SECONDS,
                )
            if self._threads is None:
                self._threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="deepinfer-grammar")
            future = self._pending[spec] = self._threads.submit(self._compiler.compile, spec)
        future.add_done_callback(lambda _: self._pending.pop(spec, None))
        return future

    def close(self) -> None:
        """Drop what has not begun; what runs is not waited for."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _forget_failure(future: asyncio.Future[CompiledGrammar]) -> None:
    if not future.cancelled():
        future.exception()
