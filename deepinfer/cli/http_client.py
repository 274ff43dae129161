"""A client for any OpenAI-compatible server: cheap enough to measure one on the same machine. Knows no engine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from deepinfer.errors import EngineError

CONNECT_TIMEOUT_SECONDS = 10.0
READ_TIMEOUT_SECONDS = 600.0


class ServerError(EngineError):
    """The server could not be reached or answered with an error."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream and when its bytes came, `time.perf_counter()`."""

    data: dict[str, Any]
    time: float


class _Reader:
    """Callbacks of the HTTP parser: collects status and body."""

    def __init__(self) -> None:
        self.status = 0
        self.body = bytearray()
        self.is_complete = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


class HttpClient:
    """Requests to one server, a connection each.

    Args:
        url: address of the server, with or without `/v1`.
        api_key: sent as a bearer token.
    """

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        base = url if "://" in url else f"http://{url}"
        self._target: SplitResult = urlsplit(base.rstrip("/").removesuffix("/v1"))
        if self._target.scheme not in ("http", "https") or not self._target.hostname:
            raise ServerError(f"--url must be an address like http://127.0.0.1:8000, but is {url!r}")
        self._headers = {"host": self._target.netloc, "connection": "close", "accept-encoding": "identity"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"

    async def get_json(self, path: str) -> dict[str, Any]:
        """GET a JSON object.

        Raises:
            ServerError: it is not reachable or answers with an error.
        """
        body = b"".join([chunk async for chunk, _ in self._exchange("GET", path, None)])
        return _json_object(body)

    async def first_model(self) -> str:
        """Id of the first model it serves."""
        models = (await self.get_json("/v1/models")).get("data") or []
        if not models:
            raise ServerError("the server lists no model")
        return str(models[0]["id"])

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[StreamEvent]:
        """POST a request with `"stream": true` and yield its events.

        Raises:
            ServerError: it is not reachable, answers with an error, or the stream breaks off.
        """
        pending = b""
        is_done = False
        async for chunk, stamp in self._exchange("POST", path, json.dumps(body).encode()):
            frames = (pending + chunk).split(b"\n\n")
            pending = frames.pop()
            for frame in frames:
                data = b"".join(line[5:].strip() for line in frame.split(b"\n") if line.startswith(b"data:"))
                if data == b"[DONE]":
                    is_done = True
                elif data:
                    event = _json_object(data)
                    if event.get("error"):
                        raise ServerError(f"the server failed while answering: {_message_of(event)}")
                    yield StreamEvent(event, stamp)
        if not is_done:
            raise ServerError("the server closed the stream before its end")

    async def _exchange(self, method: str, path: str, body: bytes | None) -> AsyncIterator[tuple[bytes, float]]:
        import httptools

        target = self._target
        is_tls = target.scheme == "https"
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(target.hostname, target.port or (443 if is_tls else 80), ssl=is_tls or None),
                CONNECT_TIMEOUT_SECONDS,
            )
        except (OSError, TimeoutError) as error:
            raise ServerError(f"no server answers at {target.scheme}://{target.netloc}: {error}") from error
        try:
            headers = dict(self._headers)
            if body is not None:
                headers |= {"content-type": "application/json", "content-length": str(len(body))}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"{method} {target.path}{path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))
            answer = _Reader()
            parser = httptools.HttpResponseParser(answer)
            while not answer.is_complete:
                data = await asyncio.wait_for(reader.read(1 << 16), READ_TIMEOUT_SECONDS)
                stamp = time.perf_counter()
                if not data:
                    break
                parser.feed_data(data)
                answer.status = parser.get_status_code()
                if answer.status < 400 and answer.body:
                    yield bytes(answer.body), stamp
                    answer.body.clear()
            if answer.status >= 400:
                raise ServerError(f"the server answered {answer.status}: {_message_of(_json_or_text(answer.body))}")
            if not answer.is_complete and answer.status == 0:
                raise ServerError("the server closed the connection without an answer")
        except (OSError, TimeoutError, httptools.HttpParserError) as error:
            raise ServerError(f"the connection to {target.netloc} broke: {error}") from error
        finally:
            writer.close()


def _json_object(data: bytes | bytearray) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ServerError(f"the server sent something that is no JSON object: {bytes(data[:80])!r}")
    return value


def _json_or_text(data: bytes | bytearray) -> dict[str, Any]:
    try:
        return _json_object(data)
    except ServerError:
        return {"error": {"message": data[:200].decode(errors="replace")}}


def _message_of(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error or body)
