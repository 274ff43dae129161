"""Keys, limits in flight, and the numbers told to clients."""

import asyncio

import pytest
from starlette.requests import Request

from deepinfer_api.admission import Admission, Uploads, check_key, read_body
from deepinfer_api.errors import ApiError
from deepinfer_api.settings import ServerSettings
from deepinfer_api.telemetry import ServerMetrics


def admission(**fields):
    return Admission(ServerSettings(**fields), ServerMetrics())


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", b"Bearer key-2"),
        (b"authorization", b"bearer  key-2 "),
        (b"x-api-key", b"key-2"),
    ],
)
def test_both_headers_are_accepted(header):
    assert (
        check_key(("key-1", "key-2"), "/v1/models", [(b"accept", b"*/*"), header]) == "key-1"
    )  # the second, counted from 0


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer key-3")],
        [(b"authorization", b"Basic key-1")],
        [(b"x-api-key", b"key-")],
        [(b"x-api-key", b"")],
        [(b"x-api-key", "schlüssel".encode())],
    ],
)
def test_anything_else_is_401(headers):
    with pytest.raises(ApiError) as caught:
        check_key(("key-1",), "/v1/models", headers)
    assert caught.value.status == 401
    assert caught.value.code == "invalid_api_key"
    assert caught.value.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/health", "/ready", "/", "/static/style.css"])
def test_probes_and_page_need_no_key(path):
    assert check_key(("key",), path, []) == ""


def test_metrics_and_docs_need_a_key():
    for path in ("/metrics", "/docs", "/v1/metrics", "/openapi.json"):
        with pytest.raises(ApiError):
            check_key(("key",), path, [])


def test_requests_in_flight_are_bounded():
    gate = admission(max_concurrent_requests=2)
    first, _second = gate.enter("a", 1), gate.enter("b", 1)
    with pytest.raises(ApiError) as caught:
        gate.enter("c", 1)
    assert caught.value.status == 429
    assert caught.value.headers["retry-after"] == "1"
    assert caught.value.headers["x-ratelimit-limit-requests"] == "2"
    assert caught.value.headers["x-ratelimit-remaining-requests"] == "0"
    assert gate.metrics.admission_rejections == {"requests": 1}
    first.close(4.0)
    first.close(4.0)
    assert gate.num_in_flight == 1
    gate.enter("c", 1)


def test_queued_tokens_are_bounded_but_one_long_prompt_gets_in():
    gate = admission(max_queued_tokens=100)
    long = gate.enter("long", 500)
    with pytest.raises(ApiError, match="500 prompt tokens are waiting"):
        gate.enter("short", 1)
    assert gate.metrics.admission_rejections == {"tokens": 1}
    long.on_first_token()
    short = gate.enter("short", 60)
    assert gate.num_queued_tokens == 60
    short.close(1.0)
    long.close(1.0)
    assert gate.num_queued_tokens == 0


def test_retry_after_follows_recent_requests():
    gate = admission()
    for seconds in (2.0, 4.0):
        gate.enter("x", 1).close(seconds)
    assert gate.retry_after_seconds() == 3
    gate.recent_seconds.extend([1000.0] * 32)
    assert gate.retry_after_seconds() == 60


def test_a_repeated_id_gets_a_name_of_its_own():
    gate = admission()
    first, second = gate.enter("same", 1), gate.enter("same", 1)
    assert first.request_id == "same"
    assert second.request_id.startswith("same~")
    second.close(1.0)
    first.close(1.0)
    assert gate.enter("same", 1).request_id == "same"


@pytest.mark.parametrize("pieces", [[], [b"{"], [b"{", b'"a"']])
def test_a_body_that_stops_coming_is_408(pieces):
    waiting = list(pieces)

    async def receive():
        if waiting:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": True}
        await asyncio.Event().wait()

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(ApiError, match="nothing of the body came") as caught:
        asyncio.run(read_body(request, ServerSettings(receive_timeout_seconds=0.01), Uploads()))
    assert (caught.value.status, caught.value.headers["connection"]) == (408, "close")


def test_a_slow_body_is_read_as_long_as_it_comes():
    waiting = [b"{", b" ", b"}"]

    async def receive():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    assert asyncio.run(read_body(request, ServerSettings(receive_timeout_seconds=30.0), Uploads())) == b"{ }"


@pytest.mark.parametrize("num_pieces", [0, 1, 1000])
def test_a_server_that_stops_waits_for_no_body(num_pieces):
    uploads = Uploads()
    num_left = num_pieces

    async def receive():
        nonlocal num_left
        if num_left:
            num_left -= 1
            await asyncio.sleep(0.001)
            return {"type": "http.request", "body": b"x", "more_body": True}
        await asyncio.Event().wait()

    async def run():
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        reading = asyncio.create_task(read_body(request, ServerSettings(), uploads))
        await asyncio.sleep(0.01)
        uploads.end()
        with pytest.raises(ApiError) as caught:
            await reading
        assert (caught.value.status, caught.value.code) == (503, "draining")
        assert not uploads.deadlines

    asyncio.run(run())
