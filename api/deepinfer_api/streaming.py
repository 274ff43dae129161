"""One generation -> one HTTP answer: frames or a body, keep-alive comments, and what happens when the client leaves.

A stream is one write per engine step. The status is sent with the first frame, so a failure before it is still a
proper HTTP error. Two things end an answer from outside, both by the same deadline: a client that left, and one that
takes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from deepinfer_api.errors import STATUS_CLIENT_GONE, ApiError, to_api_error
from deepinfer_api.exchange import Exchange
from deepinfer_api.formats.base import AnswerFormat
from deepinfer_api.generation import Generation, GenerationError
from deepinfer_api.logs import log_request_end
from deepinfer_api.settings import ServerSettings

KEEP_ALIVE_COMMENT = b": keep-alive\n\n"

logger = logging.getLogger("deepinfer_api.streaming")


CLIENT_LEFT = ApiError(STATUS_CLIENT_GONE, "the client left", code="client_gone")
CLIENT_STUCK = ApiError(STATUS_CLIENT_GONE, "the client took nothing for too long", code="client_stuck")


class RunningAnswers:
    """All answers in progress, watched by one timer: silent streams get a comment, stuck clients are given up.

    Args:
        settings: the limits.
        on_tick: also called by the timer, with `time.monotonic()`.
    """

    def __init__(self, settings: ServerSettings, on_tick: Callable[[float], None]) -> None:
        self._on_tick = on_tick
        self._keep_alive_seconds = settings.keep_alive_seconds
        self._send_timeout_seconds = settings.send_timeout_seconds
        self._interval = min(1.0, settings.keep_alive_seconds / 4, settings.send_timeout_seconds / 4)
        self._answers: set[GenerationResponse] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, answer: GenerationResponse) -> None:
        """Watch an answer."""
        self._answers.add(answer)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)

    def remove(self, answer: GenerationResponse) -> None:
        """Stop watching it; the timer ends with the last one."""
        self._answers.discard(answer)

    def end_all(self, error: ApiError) -> None:
        """End every answer with this error."""
        for answer in self._answers:
            answer.end(error)

    def _tick(self) -> None:
        self._timer = None
        now = time.monotonic()
        self._on_tick(now)
        for answer in self._answers:
            silent_seconds = now - answer.last_write_time
            if answer.is_writing:
                if silent_seconds >= self._send_timeout_seconds:
                    answer.end(CLIENT_STUCK)
            elif answer.is_stream and silent_seconds >= self._keep_alive_seconds:
                answer.send_comment()
        if self._answers:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)


class GenerationResponse(Response):
    """Runs a generation and sends it, streamed or whole."""

    def __init__(
        self,
        generation: Generation,
        answer: AnswerFormat,
        exchange: Exchange,
        running: RunningAnswers,
        *,
        is_stream: bool,
    ) -> None:
        super().__init__()
        self._generation = generation
        self._answer = answer
        self._exchange = exchange
        self._running = running
        self.is_stream = is_stream
        self._is_started = False
        self._comment: asyncio.Task[None] | None = None
        self._deadline: asyncio.Timeout | None = None
        self._end_error: ApiError | None = None
        self._send: Send = _not_connected
        self._body_send: Send = _not_connected
        self.is_writing = False
        self.last_write_time = time.monotonic()
        self.status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; the generation is over in the engine when this returns."""
        exchange = self._exchange
        error: ApiError | None = None
        self._send = send
        self._body_send = scope["state"]["body_send"]
        watcher = asyncio.create_task(self._watch(receive))
        try:
            async with asyncio.timeout(exchange.settings.request_timeout_seconds) as self._deadline:
                self._running.add(self)
                # A task of its own: each token then wakes one short chain of coroutines, not all layers of the app.
                await asyncio.create_task(self._send_stream() if self.is_stream else self._send_body())
        except Exception as failure:
            error = self._error_of(failure)
        finally:
            self._deadline = None
            self._running.remove(self)
            self._generation.abort()
            watcher.cancel()
            if self._comment is not None:
                self._comment.cancel()
            exchange.ticket.close(time.monotonic() - self._generation.arrival_time)
            log_request_end(exchange, self._generation, error)
        if error is not None and error.status != STATUS_CLIENT_GONE:
            await self._send_error(error)

    def _error_of(self, failure: Exception) -> ApiError:
        if self._end_error is not None:
            return self._end_error
        if isinstance(failure, TimeoutError) and self._deadline is not None and self._deadline.expired():
            seconds = self._exchange.settings.request_timeout_seconds
            return ApiError(504, f"the answer took longer than {seconds} s, this server's limit", code="timeout")
        if isinstance(failure, GenerationError):
            return ApiError(500, str(failure), code="generation_failed")
        error = to_api_error(failure, prompt_param=self._exchange.prompt_param)
        if error.status == 500:
            logger.error("request %s failed", self._exchange.request_id, exc_info=failure)
        return error

    async def _send_stream(self) -> None:
        generation, answer = self._generation, self._answer
        ticket = self._exchange.ticket
        async with aclosing(generation.pieces()) as pieces:
            async for choice, piece in pieces:
                if ticket.num_queued_tokens:
                    ticket.on_first_token()
                frames = answer.piece_frames(generation, choice, piece)
                if frames:
                    await self._write(frames)
        self._running.remove(self)
        await self._write(answer.final_frames(generation), is_last=True)

    async def _write(self, data: bytes, *, is_last: bool = False) -> None:
        comment = self._comment
        if comment is not None and comment is not asyncio.current_task():
            await comment
            self._comment = None
        self.last_write_time = time.monotonic()
        self.is_writing = True
        if not self._is_started:
            self._is_started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": self._stream_headers()})
        await self._body_send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self.is_writing = False

    def _stream_headers(self) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        headers.extend((name.encode(), value.encode("latin-1")) for name, value in self._exchange.headers.items())
        return headers

    async def _send_body(self) -> None:
        generation, answer = self._generation, self._answer
        ticket = self._exchange.ticket
        async with aclosing(generation.pieces()) as pieces:
            async for choice, piece in pieces:
                if ticket.num_queued_tokens:
                    ticket.on_first_token()
                answer.add(choice, piece)
        body = json.dumps(answer.body(generation), ensure_ascii=False, separators=(",", ":")).encode()
        await self._send_json(200, body, dict(self._exchange.headers))

    async def _send_json(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        raw = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        raw.extend((name.encode(), value.encode("latin-1")) for name, value in headers.items())
        self.is_writing = True
        self._is_started = True
        await self._send({"type": "http.response.start", "status": status, "headers": raw})
        await self._send({"type": "http.response.body", "body": body})
        self.is_writing = False

    async def _send_error(self, error: ApiError) -> None:
        if not self._is_started:
            headers = dict(self._exchange.headers) | error.headers
            await self._send_json(error.status, json.dumps(error.body(), ensure_ascii=False).encode(), headers)
        elif self.is_stream:
            await self._send({"type": "http.response.body", "body": self._answer.error_frames(error)})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end(CLIENT_LEFT)

    def end(self, error: ApiError) -> None:
        """Stop generating and sending at once, for a reason that lies outside of the generation."""
        if self._deadline is not None and self._end_error is None:
            self._end_error = error
            self._deadline.reschedule(0)

    def send_comment(self) -> None:
        """Show the client that the request lives."""
        self._comment = asyncio.create_task(self._write(KEEP_ALIVE_COMMENT))


async def _not_connected(message: Message) -> None:
    raise RuntimeError(f"{message['type']} before the answer was called")
