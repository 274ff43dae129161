"""Outputs of one request on their way from the engine's thread to the event loop that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from deepinfer.errors import EngineDeadError
from deepinfer.outputs import EngineOutput


class OutputStream:
    """Async iterator over the outputs of one request; ends after the output that has a finish_reason.

    Belongs to one event loop, where all its methods are called, by one consumer. Outputs that arrive while nobody waits
    are merged, so a slow consumer costs one pending object, not one per token. Cancelling a wait loses nothing and does
    not end the request: whoever gives up calls `aclose`.
    """

    __slots__ = ("_abort", "_error", "_is_exhausted", "_pending", "_waiter", "loop", "request_id")

    def __init__(self, request_id: str, loop: asyncio.AbstractEventLoop, abort: Callable[[str], None]) -> None:
        self.request_id = request_id
        self.loop = loop
        self._abort = abort
        self._pending: EngineOutput | None = None
        self._error: EngineDeadError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_exhausted = False

    def push(self, item: EngineOutput | EngineDeadError) -> None:
        """Hand over an output, or the error that ended the engine."""
        if isinstance(item, EngineDeadError):
            self._error = item
        elif self._pending is None:
            self._pending = item
        else:
            merge_output_into(self._pending, item)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EngineOutput:
        """Wait for the next output.

        Raises:
            EngineDeadError: the engine stopped before the request ended.
        """
        while self._pending is None:
            if self._is_exhausted:
                raise StopAsyncIteration
            if self._error is not None:
                self._is_exhausted = True
                raise self._error
            self._waiter = self.loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        output, self._pending = self._pending, None
        if output.finish_reason is not None:
            self._is_exhausted = True
        return output

    async def aclose(self) -> None:
        """Abort the request unless it has ended."""
        if not self._is_exhausted:
            self._is_exhausted = True
            self._abort(self.request_id)


def merge_output_into(earlier: EngineOutput, later: EngineOutput) -> None:
    """Append what a later step gave to the output of an earlier one."""
    earlier.new_token_ids = earlier.new_token_ids + later.new_token_ids
    if later.logprobs is not None:
        earlier.logprobs = (earlier.logprobs or []) + later.logprobs
    if later.prompt_logprobs is not None:
        earlier.prompt_logprobs = (earlier.prompt_logprobs or []) + later.prompt_logprobs
    earlier.finish_reason = later.finish_reason
    earlier.stop_token_id = later.stop_token_id
    earlier.error_message = later.error_message
    earlier.is_refused = later.is_refused
    earlier.num_cached_tokens = later.num_cached_tokens
    earlier.stats = later.stats
