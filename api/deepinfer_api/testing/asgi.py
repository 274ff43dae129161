"""An ASGI client that sees every single write of a server, and can leave or dawdle at any of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message


@dataclass(slots=True)
class AsgiAnswer:
    """What came back.

    Attributes:
        status: 0 when nothing came.
        headers: names in lower case.
        writes: bodies of the single writes, in order, empty ones left out.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    writes: list[bytes] = field(default_factory=list)
    is_complete: bool = False

    @property
    def body(self) -> bytes:
        """All writes joined."""
        return b"".join(self.writes)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class AsgiClient:
    """Sends requests straight into an application.

    Attributes:
        app: the application.
        headers: sent with each request.
    """

    app: ASGIApp
    headers: Mapping[str, str] = field(default_factory=dict)

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> AsgiAnswer:
        """GET."""
        return await self.request("GET", path, headers=headers)

    async def post(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> AsgiAnswer:
        """POST a body: bytes as they are, anything else as JSON."""
        return await self.request("POST", path, body=body, headers=headers)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        leave_after_writes: int | None = None,
        leave_at_once: bool = False,
        stuck: asyncio.Event | None = None,
        body_chunks: Sequence[bytes] | None = None,
    ) -> AsgiAnswer:
        """Send a request and take the answer.

        Args:
            leave_after_writes: disconnect after this many non-empty writes.
            leave_at_once: disconnect when the body is sent.
            stuck: every write blocks until it is set, like a client that reads nothing.
            body_chunks: send the body in these pieces without announcing its length.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        chunks = [data] if body_chunks is None else list(body_chunks)
        raw_headers = [
            (name.lower().encode(), value.encode()) for name, value in {**self.headers, **(headers or {})}.items()
        ]
        if body is not None and body_chunks is None:
            raw_headers.append((b"content-length", str(len(data)).encode()))
        answer = AsgiAnswer()
        has_left = asyncio.Event()
        if leave_at_once:
            has_left.set()
        messages: list[Message] = [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks) - 1}
            for number, chunk in enumerate(chunks)
        ]

        async def receive() -> Message:
            if messages:
                return messages.pop(0)
            await has_left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if stuck is not None:
                await stuck.wait()
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
                return
            if message.get("body") and not has_left.is_set():
                answer.writes.append(bytes(message["body"]))
                if leave_after_writes is not None and len(answer.writes) >= leave_after_writes:
                    has_left.set()
            if not message.get("more_body"):
                answer.is_complete = True
                has_left.set()

        path_only, _, query = path.partition("?")
        await self.app(
            {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": method,
                "scheme": "http",
                "path": path_only,
                "raw_path": path_only.encode(),
                "query_string": query.encode(),
                "root_path": "",
                "headers": raw_headers,
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 8000),
                "state": {},
            },
            receive,
            send,
        )
        return answer
