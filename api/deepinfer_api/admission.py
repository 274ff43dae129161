"""Who gets in: keys, body size, and the limits on requests in flight and on queued prompt tokens."""

from __future__ import annotations

import asyncio
import hmac
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from starlette.requests import ClientDisconnect, Request

from deepinfer_api.errors import ApiError, overloaded, unavailable
from deepinfer_api.settings import ServerSettings
from deepinfer_api.telemetry import ServerMetrics

PUBLIC_PATHS = frozenset({"/", "/health", "/ready", "/v1/health", "/v1/ready", "/favicon.ico"})
"""Probes and the page itself need no key; the page asks for one when it has to send it."""


def check_key(keys: Sequence[str], path: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Accept `Authorization: Bearer KEY` or `x-api-key: KEY`, compared in constant time.

    Returns:
        A name of the key that tells clients apart but does not show the key; "" where none is needed.

    Raises:
        ApiError: 401.
    """
    if not keys or path in PUBLIC_PATHS or path.startswith("/static/"):
        return ""
    given = None
    for name, value in headers:
        if name == b"x-api-key":
            given = value
        elif name == b"authorization" and value[:7].lower() == b"bearer ":
            given = value[7:].strip()
            break
    if given is not None:
        # Every key is compared, so that the time does not tell which one came close.
        matches = [number for number, key in enumerate(keys) if hmac.compare_digest(given, key.encode())]
        if matches:
            return f"key-{matches[0]}"
    message = (
        "the API key is not known to this server"
        if given is not None
        else "an API key is needed: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`"
    )
    raise ApiError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})


@dataclass(slots=True, eq=False)
class Uploads:
    """Bodies on their way, so that a server that stops need not wait for clients that never finish theirs."""

    deadlines: set[asyncio.Timeout] = field(default_factory=set)
    is_ended: bool = False

    def end(self) -> None:
        """Refuse what has not come in full, now and later."""
        self.is_ended = True
        for deadline in self.deadlines:
            deadline.reschedule(0)


async def read_body(request: Request, settings: ServerSettings, uploads: Uploads) -> bytes:
    """The request body.

    Raises:
        ApiError: 413, as soon as more than `max_body_bytes` are announced or have come; 408, when nothing comes for
            `receive_timeout_seconds`; 503, when the server stops before it is complete.
    """
    max_body_bytes = settings.max_body_bytes
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > max_body_bytes:
        raise _too_large(max_body_bytes)
    chunks = []
    size = 0
    deadline = asyncio.timeout(settings.receive_timeout_seconds)
    try:
        async with deadline:
            uploads.deadlines.add(deadline)
            async for chunk in request.stream():
                size += len(chunk)
                if size > max_body_bytes:
                    raise _too_large(max_body_bytes)
                chunks.append(chunk)
                if not uploads.is_ended:
                    deadline.reschedule(asyncio.get_running_loop().time() + settings.receive_timeout_seconds)
    except TimeoutError:
        if uploads.is_ended:
            raise unavailable("the server is shutting down and takes no new requests", "draining", 5) from None
        raise ApiError(
            408,
            f"nothing of the body came for {settings.receive_timeout_seconds:g} s",
            code="request_timeout",
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise ApiError(499, "the client left before its request was complete", code="client_gone") from None
    finally:
        uploads.deadlines.discard(deadline)
    return b"".join(chunks)


def _too_large(max_body_bytes: int) -> ApiError:
    return ApiError(
        413,
        f"the body is larger than the {max_body_bytes} bytes this server takes",
        code="body_too_large",
        headers={"connection": "close"},
    )


@dataclass(slots=True, eq=False)
class Ticket:
    """One admitted request; `close` may be called more than once.

    Attributes:
        request_id: the request's id, changed only where another request in flight has the same.
    """

    admission: Admission
    request_id: str
    num_queued_tokens: int
    is_open: bool = True

    def on_first_token(self) -> None:
        """Its prompt waits no longer."""
        self.admission.num_queued_tokens -= self.num_queued_tokens
        self.num_queued_tokens = 0

    def close(self, seconds: float) -> None:
        """It has ended after `seconds`."""
        if self.is_open:
            self.is_open = False
            self.on_first_token()
            self.admission.request_ids.discard(self.request_id)
            self.admission.recent_seconds.append(seconds)


@dataclass(slots=True, eq=False)
class Admission:
    """Counts what is in flight and refuses what is too much."""

    settings: ServerSettings
    metrics: ServerMetrics
    request_ids: set[str] = field(default_factory=set)
    num_queued_tokens: int = 0
    recent_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=32))

    @property
    def num_in_flight(self) -> int:
        """Admitted requests that have not ended."""
        return len(self.request_ids)

    def enter(self, request_id: str, num_prompt_tokens: int) -> Ticket:
        """Admit a request.

        Raises:
            ApiError: 429 with `retry-after` and the limits in `x-ratelimit-*`.
        """
        settings = self.settings
        if self.num_in_flight >= settings.max_concurrent_requests:
            self.metrics.admission_rejections["requests"] += 1
            raise overloaded(
                f"{self.num_in_flight} requests are in flight, which is this server's limit; try again later",
                self.retry_after_seconds(),
                self.headers(),
            )
        if self.num_queued_tokens and self.num_queued_tokens + num_prompt_tokens > settings.max_queued_tokens:
            self.metrics.admission_rejections["tokens"] += 1
            raise overloaded(
                f"{self.num_queued_tokens} prompt tokens are waiting and this request has {num_prompt_tokens}, which "
                f"is more than this server queues ({settings.max_queued_tokens}); try again later",
                self.retry_after_seconds(),
                self.headers(),
            )
        if request_id in self.request_ids:
            # Clients repeat an id when they retry; the engine needs distinct ones.
            request_id = f"{request_id}~{uuid.uuid4().hex[:8]}"
        self.request_ids.add(request_id)
        self.num_queued_tokens += num_prompt_tokens
        return Ticket(self, request_id, num_prompt_tokens)

    def retry_after_seconds(self) -> int:
        """About the time until one of the running requests ends, from the recent ones."""
        return max(1, min(60, round(fmean(self.recent_seconds)))) if self.recent_seconds else 1

    def headers(self) -> dict[str, str]:
        """The limits and what is left of them."""
        settings = self.settings
        return {
            "x-ratelimit-limit-requests": str(settings.max_concurrent_requests),
            "x-ratelimit-remaining-requests": str(max(0, settings.max_concurrent_requests - self.num_in_flight)),
            "x-ratelimit-limit-tokens": str(settings.max_queued_tokens),
            "x-ratelimit-remaining-tokens": str(max(0, settings.max_queued_tokens - self.num_queued_tokens)),
        }
