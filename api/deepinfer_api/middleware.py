"""What happens to every request before and after its route: id, key, and a last net for failures. Plain ASGI."""

from __future__ import annotations

import json
import logging
import uuid

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepinfer_api.admission import check_key
from deepinfer_api.errors import ApiError, to_api_error
from deepinfer_api.settings import ServerSettings
from deepinfer_api.telemetry import ServerMetrics

MAX_REQUEST_ID_CHARACTERS = 128

logger = logging.getLogger("deepinfer_api.middleware")


def accepted_request_id(given: bytes | None) -> str:
    """The client's id if it is short printable ASCII without spaces, else a new one."""
    if given is not None:
        text = given.decode("latin-1")
        if 0 < len(text) <= MAX_REQUEST_ID_CHARACTERS and all("!" <= c <= "~" for c in text):
            return text
    return uuid.uuid4().hex


class RequestIdMiddleware:
    """Puts the id into `scope["state"]["request_id"]` and into the answer as `x-request-id` and `request-id`.

    `scope["state"]["body_send"]` is the way to the client without the layers that only care for the start of an
    answer: a stream takes it for what follows the start, for each token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = None
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                given = value
        request_id = accepted_request_id(given)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["body_send"] = send
        raw = request_id.encode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", raw), (b"request-id", raw)]
            await send(message)

        await self._app(scope, receive, send_with_id)


class GuardMiddleware:
    """Checks the key, and turns what no handler caught into a 500 in the protocol's shape.

    The key's name goes into `scope["state"]["client_key"]`.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: ServerMetrics) -> None:
        self._app = app
        self._keys = settings.api_keys
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_started = False

        async def send_and_note(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            if scope["method"] != "OPTIONS":
                scope["state"]["client_key"] = check_key(self._keys, scope["path"], scope["headers"])
            await self._app(scope, receive, send_and_note)
        except Exception as failure:
            error = to_api_error(failure)
            if error.status == 500:
                logger.error("request %s failed", scope["state"]["request_id"], exc_info=failure)
                self._metrics.request_errors["internal_error"] += 1
            if not is_started:
                await send_error(error, send)


async def send_error(error: ApiError, send: Send) -> None:
    """Send an error as a whole answer."""
    body = json.dumps(error.body(), ensure_ascii=False).encode()
    headers = MutableHeaders({"content-type": "application/json", "content-length": str(len(body))} | error.headers)
    await send({"type": "http.response.start", "status": error.status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})
