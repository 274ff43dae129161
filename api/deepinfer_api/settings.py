"""Options of the HTTP layer: one frozen object, built at the process edge and passed down."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deepinfer.errors import ConfigError

ENV_PREFIX = "DEEPINFER_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the server is called, whom it serves, and its limits.

    Attributes:
        model_name: id of the served model in answers and in `GET /v1/models`; None takes the model file's own.
        model_aliases: further names a request may use for it.
        api_keys: accepted keys; empty means that no key is asked for.
        cors_origins: origins a browser may call from; "*" is any.
        max_body_bytes: larger request bodies are answered with 413.
        max_concurrent_requests: HTTP generation requests in flight, running and waiting; more are answered with 429.
        max_queued_tokens: prompt tokens of requests that have no first token yet; more are answered with 429.
        keep_alive_seconds: a stream that was silent this long sends a comment.
        max_outputs: outputs of one request, prompts times `n`.
        receive_timeout_seconds: a client that sends nothing of its body for this long gets a 408.
        send_timeout_seconds: a client that takes nothing for this long counts as gone.
        request_timeout_seconds: bound on one request from admission to end; None is no bound.
        drain_timeout_seconds: how long running requests may go on after SIGTERM.
        step_timeout_seconds: an engine step that takes longer turns liveness red: something hangs.
        default_sampling: sampling fields a request gets where it names none, such as {"temperature": 0.6}.
    """

    model_name: str | None = None
    model_aliases: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    cors_origins: tuple[str, ...] = ("*",)
    max_body_bytes: int = 32 << 20
    max_concurrent_requests: int = 1024
    max_queued_tokens: int = 4_000_000
    keep_alive_seconds: float = 15.0
    max_outputs: int = 1024
    receive_timeout_seconds: float = 60.0
    send_timeout_seconds: float = 60.0
    request_timeout_seconds: float | None = None
    drain_timeout_seconds: float = 30.0
    step_timeout_seconds: float = 300.0
    default_sampling: Mapping[str, float | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        if not all((*self.model_aliases, self.model_name is None or self.model_name)):
            raise ConfigError("a served model name must not be empty")
        for name in ("max_body_bytes", "max_concurrent_requests", "max_queued_tokens", "keep_alive_seconds",
                     "max_outputs", "receive_timeout_seconds", "send_timeout_seconds",
                     "step_timeout_seconds"):  # fmt: skip
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be positive, but is {getattr(self, name)!r}")
        if self.request_timeout_seconds is not None and self.request_timeout_seconds <= 0:
            raise ConfigError(f"request_timeout_seconds must be positive, but is {self.request_timeout_seconds!r}")
        if self.drain_timeout_seconds < 0:
            raise ConfigError(f"drain_timeout_seconds must not be negative, but is {self.drain_timeout_seconds!r}")
        for key in self.api_keys:
            if not key or not key.isascii() or key != key.strip():
                raise ConfigError("an API key must be non-empty ASCII without spaces around it")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **given: Any) -> ServerSettings:
        """Settings from `DEEPINFER_API_KEYS`, `DEEPINFER_CORS_ORIGINS` (comma-separated lists) and
        `DEEPINFER_MAX_BODY_BYTES`, `DEEPINFER_MAX_CONCURRENT_REQUESTS`, `DEEPINFER_KEEP_ALIVE_SECONDS`,
        `DEEPINFER_DRAIN_TIMEOUT_SECONDS`, `DEEPINFER_REQUEST_TIMEOUT_SECONDS`.

        Args:
            environ: variables; None reads the process environment.
            given: fields that are set already, for example by command-line options; they win.

        Raises:
            ConfigError: a variable has no usable value.
        """
        variables = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for name in ("api_keys", "cors_origins"):
            text = variables.get(ENV_PREFIX + name.upper())
            if text is not None:
                values[name] = tuple(item.strip() for item in text.split(",") if item.strip())
        for name, convert in (
            ("max_body_bytes", int),
            ("max_concurrent_requests", int),
            ("keep_alive_seconds", float),
            ("drain_timeout_seconds", float),
            ("request_timeout_seconds", float),
        ):
            text = variables.get(ENV_PREFIX + name.upper())
            if text is not None:
                try:
                    values[name] = convert(text)
                except ValueError:
                    raise ConfigError(f"{ENV_PREFIX}{name.upper()} must be a number, but is {text!r}") from None
        return cls(**(values | given))
