"""Exceptions become a status and a body in OpenAI's shape."""

import pytest
from starlette.exceptions import HTTPException

from deepinfer.errors import (
    CapacityError,
    EngineDeadError,
    InvalidSamplingParamsError,
    PromptTooLongError,
    QueueFullError,
    RequestAbortedError,
    RequestError,
)
from deepinfer_api.errors import ApiError, overloaded, to_api_error


@pytest.mark.parametrize(
    ("failure", "status", "kind", "code", "param"),
    [
        (PromptTooLongError(9, 8), 400, "invalid_request_error", "context_length_exceeded", "messages"),
        (
            InvalidSamplingParamsError("top_p must be", param="top_p"),
            400,
            "invalid_request_error",
            "invalid_value",
            "top_p",
        ),
        (RequestError("bad"), 400, "invalid_request_error", "invalid_value", None),
        (QueueFullError("full", retry_after_seconds=3), 429, "rate_limit_error", "rate_limit_exceeded", None),
        (CapacityError("closing"), 503, "server_error", "no_capacity", None),
        (EngineDeadError(ValueError("x")), 503, "server_error", "engine_dead", None),
        (RequestAbortedError("gone"), 503, "server_error", "aborted", None),
        (HTTPException(404), 404, "not_found_error", "not_found", None),
        (HTTPException(405, headers={"Allow": "POST"}), 405, "invalid_request_error", "method_not_allowed", None),
        (ZeroDivisionError("secret detail"), 500, "server_error", "internal_error", None),
    ],
)
def test_map(failure, status, kind, code, param):
    error = to_api_error(failure, prompt_param="messages")
    body = error.body()["error"]
    assert (error.status, body["type"], body["code"], body["param"]) == (status, kind, code, param)
    assert body["message"]
    assert "secret" not in body["message"]


def test_length_errors_carry_the_numbers():
    body = to_api_error(PromptTooLongError(9001, 8192)).body()["error"]
    assert (body["n_prompt_tokens"], body["n_ctx"]) == (9001, 8192)
    assert "9001" in body["message"]
    assert "8192" in body["message"]


@pytest.mark.parametrize(("asked", "told"), [(0, "1"), (7, "7"), (100_000, "60")])
def test_retry_after_is_never_large(asked, told):
    assert overloaded("full", asked).headers["retry-after"] == told


def test_an_api_error_is_passed_on():
    error = ApiError(418, "teapot")
    assert to_api_error(error) is error
