"""Exceptions of the engine. Every error that one request causes is a `RequestError`; none stops the engine."""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors this package raises."""


class ConfigError(EngineError, ValueError):
    """A configuration value is invalid. The message names the field, the value and what to do."""


class RequestError(EngineError, ValueError):
    """A request is invalid.

    Attributes:
        param: name of the field at fault, or None.
    """

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class PromptTooLongError(RequestError):
    """The prompt leaves no room for an output token in the context."""

    def __init__(self, num_tokens: int, max_model_len: int) -> None:
        super().__init__(
            f"the prompt has {num_tokens} tokens, but the context holds {max_model_len} including at least one "
            "token of output; shorten the prompt or start the server with a larger --max-model-len",
            param="prompt",
        )
        self.num_tokens = num_tokens
        self.max_model_len = max_model_len


class InvalidSamplingParamsError(RequestError):
    """A sampling parameter has the wrong type or is out of range."""


class GrammarError(RequestError):
    """The required form of an output is malformed or uses something that is not covered.

    Attributes:
        kind: which form: "json_schema", "regex", "grammar", "choice" or "json_object".
        path: where in it, such as ".properties.a" or "[2]"; empty for the whole.
        problem: what is wrong there, as the rest of a sentence.
    """

    def __init__(self, kind: str, problem: str, path: str = "") -> None:
        super().__init__(f"{kind}{path} {problem}", param=f"{kind}{path}")
        self.kind = kind
        self.path = path
        self.problem = problem


class CapacityError(EngineError):
    """The engine cannot take the work now."""


class QueueFullError(CapacityError):
    """Too many requests are waiting.

    Attributes:
        retry_after_seconds: a whole number of seconds after which a retry makes sense.
    """

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class OutOfBlocksError(CapacityError):
    """No free KV block. Internal: the scheduler preempts, users never see it."""


class RequestAbortedError(EngineError):
    """The request was aborted before it finished."""


class EngineDeadError(EngineError):
    """The engine loop ended on an unexpected error.

    Attributes:
        cause: the error that ended it.
    """

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"the engine has stopped: {type(cause).__name__}: {cause}")
        self.cause = cause


class WeightLoadError(EngineError):
    """A model file is missing, damaged, or holds something this engine does not cover."""
