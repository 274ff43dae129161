"""The one place where an exception becomes a status and a body in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException

from deepinfer.errors import (
    CapacityError,
    EngineDeadError,
    PromptTooLongError,
    QueueFullError,
    RequestAbortedError,
    RequestError,
)

STATUS_CLIENT_GONE = 499

_TYPE_OF_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    499: "client_closed_request",
}


class ApiError(Exception):
    """An error answer.

    Attributes:
        status: HTTP status.
        message: one sentence: the field, its value, and what to do.
        param: path of the field at fault, like `messages[2].content`.
        code: a stable word a program can test.
        extra: further keys of the error object.
        headers: headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The answer's JSON object."""
        kind = _TYPE_OF_STATUS.get(self.status) or ("invalid_request_error" if self.status < 500 else "server_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error | self.extra}


def invalid_request(message: str, param: str | None, *, code: str = "invalid_value") -> ApiError:
    """A 400 that names a field."""
    return ApiError(400, message, param=param, code=code)


def unsupported(param: str, message: str) -> ApiError:
    """A 400 for something valid that this server does not do."""
    return ApiError(400, message, param=param, code="unsupported_parameter")


def too_long(num_prompt_tokens: int, max_model_len: int, param: str) -> ApiError:
    """A 400 for a prompt that leaves no room in the context."""
    return ApiError(
        400,
        str(PromptTooLongError(num_prompt_tokens, max_model_len)),
        param=param,
        code="context_length_exceeded",
        extra={"n_prompt_tokens": num_prompt_tokens, "n_ctx": max_model_len},
    )


def overloaded(message: str, retry_after_seconds: int, headers: Mapping[str, str] | None = None) -> ApiError:
    """A 429; the wait is bounded because some clients sleep for whatever they are told."""
    wait = str(max(1, min(retry_after_seconds, 60)))
    return ApiError(429, message, code="rate_limit_exceeded", headers={"retry-after": wait, **(headers or {})})


def unavailable(message: str, code: str, retry_after_seconds: int = 2) -> ApiError:
    """A 503: loading, draining, or a dead engine."""
    return ApiError(503, message, code=code, headers={"retry-after": str(retry_after_seconds)})


def to_api_error(error: BaseException, *, prompt_param: str = "prompt") -> ApiError:
    """Map any exception; what is not expected becomes a 500 that shows no internals.

    Args:
        error: what was raised.
        prompt_param: name of the field that holds the prompt on this route.
    """
    match error:
        case ApiError():
            return error
        case PromptTooLongError():
            return too_long(error.num_tokens, error.max_model_len, prompt_param)
        case RequestError():
            return invalid_request(str(error), error.param)
        case QueueFullError():
            return overloaded(str(error), error.retry_after_seconds)
        case CapacityError():
            return unavailable(str(error), "no_capacity")
        case EngineDeadError():
            return unavailable("the engine has stopped after an internal error; restart the server", "engine_dead")
        case RequestAbortedError():
            return unavailable("the request was aborted by the server", "aborted")
        case HTTPException():
            return _http_error(error)
        case _:
            return ApiError(
                500,
                "the server failed while answering; the log has the cause under the id in the header x-request-id",
                code="internal_error",
            )


def _http_error(error: HTTPException) -> ApiError:
    match error.status_code:
        case 404:
            message = "there is no such route; GET /docs lists what is served"
        case 405:
            allowed = (error.headers or {}).get("allow") or (error.headers or {}).get("Allow") or ""
            message = "this route does not take that method" + (f"; it takes {allowed}" if allowed else "")
        case _:
            message = str(error.detail)
    code = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}.get(error.status_code)
    return ApiError(error.status_code, message, code=code, headers=error.headers)
