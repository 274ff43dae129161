"""The engine fails at any moment: the client hears of it in the protocol's shape, never just a closed connection."""

import asyncio
import logging

import pytest

from deepinfer.errors import CapacityError, EngineDeadError, QueueFullError, RequestAbortedError
from deepinfer_api.testing.byte_codec import byte_ids

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
BODY = {"messages": [{"role": "user", "content": "hi"}]}

FAILURES = [
    (RuntimeError("secret detail"), 500, "internal_error"),
    (EngineDeadError(ValueError("secret detail")), 503, "engine_dead"),
    (RequestAbortedError("gone"), 503, "aborted"),
]


def failing(error, num_tokens):
    def script(request):
        yield from ([byte] for byte in byte_ids("x" * num_tokens))
        yield error

    return script


@pytest.mark.parametrize(("error", "status", "code"), FAILURES)
def test_before_the_first_token_it_is_a_status(make_server, error, status, code):
    server = make_server(failing(error, 0))
    for stream in (False, True):
        answer = asyncio.run(server.client.post(CHAT, BODY | {"stream": stream}))
        assert answer.status == status
        assert answer.json()["error"]["code"] == code
        assert b"secret" not in answer.body
    assert len(server.app.state.services.running) == 0


@pytest.mark.parametrize("num_tokens", [1, 2, 7])
@pytest.mark.parametrize(("error", "status", "code"), FAILURES)
@pytest.mark.parametrize("n", [1, 2])
def test_after_it_it_is_an_error_event(make_server, error, status, code, num_tokens, n):
    server = make_server(failing(error, num_tokens))
    raw, streamed = asyncio.run(server.stream(CHAT, BODY | {"n": n}, expect_error=True))
    assert streamed.error["code"] == code
    assert raw.is_complete
    assert b"secret" not in raw.body
    whole = asyncio.run(server.client.post(CHAT, BODY | {"n": n}))
    assert whole.status == status
    assert server.backend.active == {}


def test_unexpected_failures_are_logged_once_with_the_id(make_server, caplog):
    server = make_server(failing(RuntimeError("the cause"), 2))
    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(server.client.post(CHAT, BODY, headers={"x-request-id": "my-id"}))
    assert answer.status == 500
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "my-id" in errors[0].getMessage()
    assert "the cause" in str(errors[0].exc_info[1])
    assert server.app.state.services.metrics.request_errors == {"internal_error": 1}


def test_a_failure_of_the_route_itself_is_a_500(make_server, monkeypatch):
    server = make_server()
    monkeypatch.setattr(type(server.app.state.services), "ready_model", lambda services: 1 / 0)
    answer = asyncio.run(server.client.post(CHAT, BODY))
    assert answer.status == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (QueueFullError("1 request is waiting", retry_after_seconds=7), 429),
        (CapacityError("the engine is shutting down"), 503),
        (EngineDeadError(ValueError()), 503),
    ],
)
def test_refusals_at_the_call(make_server, monkeypatch, error, status):
    server = make_server()

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(type(server.backend), "generate", refuse)
    for stream in (False, True):
        answer = asyncio.run(server.client.post(CHAT, BODY | {"stream": stream, "n": 2}))
        assert answer.status == status
        assert answer.headers["retry-after"]
    assert server.app.state.services.admission.num_in_flight == 0


def test_a_refusal_of_a_later_choice_aborts_the_earlier_ones(make_server):
    server = make_server("abc", backend={"max_num_waiting": 1})
    answer = asyncio.run(server.client.post(CHAT, BODY | {"n": 2}))
    assert answer.status == 429
    assert answer.headers["retry-after"] == "2"
    assert len(server.backend.aborted) == 1
    assert server.app.state.services.admission.num_in_flight == 0
