"""The log: one line for each finished request, one for each busy window, as text or JSON. Never prompt text."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from deepinfer_api.backends.base import BackendLoad
from deepinfer_api.errors import STATUS_CLIENT_GONE, ApiError
from deepinfer_api.exchange import Exchange
from deepinfer_api.generation import Generation
from deepinfer_api.telemetry import ServerMetrics

WINDOW_SECONDS = 10.0

activity_logger = logging.getLogger("deepinfer_api.activity")
request_logger = logging.getLogger("deepinfer_api.requests")


class TextFormatter(logging.Formatter):
    """`12:00:01 message key=value ...`; the level stands before messages above INFO."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback if there is one."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = f"{record.levelname} " if record.levelno > logging.INFO else ""
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        shown = "".join(f" {key}={value}" for key, value in fields.items() if value is not None)
        text = f"{stamp} {level}{record.getMessage()}{shown}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The object."""
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def configure_logging(level: str, *, as_json: bool) -> None:
    """Send this program's log to standard error; for the process that owns the server only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    for name in ("deepinfer", "deepinfer_api", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    # uvicorn repeats at INFO what our own lines say.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class ActivityLog:
    """One line for each window in which the engine computed something; idle windows are silent.

    Args:
        metrics: where the engine's steps are counted.
        backend_load: how many requests run and wait now.
    """

    def __init__(self, metrics: ServerMetrics, backend_load: Callable[[], BackendLoad]) -> None:
        self._metrics = metrics
        self._backend_load = backend_load
        self._begin = time.monotonic()
        self._seen = self._counts()

    def _counts(self) -> tuple[int, int, int, int]:
        metrics = self._metrics
        return (
            metrics.num_prefill_rows,
            metrics.num_decode_rows,
            metrics.num_prefix_cache_queries,
            metrics.num_prefix_cache_hits,
        )

    def tick(self, now: float) -> None:
        """Called about once a second while requests run; `now` is `time.monotonic()`."""
        seconds = now - self._begin
        if seconds < WINDOW_SECONDS:
            return
        counts = self._counts()
        prefill, decode, queries, hits = (new - old for new, old in zip(counts, self._seen, strict=True))
        self._begin, self._seen = now, counts
        # After a pause the first tick ends a window that lasted for the whole pause.
        if seconds > 2 * WINDOW_SECONDS or not prefill + decode:
            return
        load = self._backend_load()
        activity_logger.info(
            "activity",
            extra={
                "fields": {
                    "running": load.num_running,
                    "waiting": load.num_waiting,
                    "prompt_tok_per_s": round(prefill / seconds, 1),
                    "generation_tok_per_s": round(decode / seconds, 1),
                    "kv_use": round(self._metrics.kv_cache_usage_ratio, 3),
                    "hit_ratio": round(hits / queries, 3) if queries else None,
                }
            },
        )


def log_request_end(exchange: Exchange, generation: Generation, error: ApiError | None) -> None:
    """Count a request that was admitted and has ended, and write its line."""
    metrics = exchange.metrics
    seconds = time.monotonic() - generation.arrival_time
    usage = generation.usage()
    metrics.on_request_end(
        num_prompt_tokens=usage.num_prompt_tokens,
        num_output_tokens=usage.num_output_tokens,
        seconds=seconds,
        stats=[choice.stats for choice in generation.choices if choice.stats is not None],
    )
    if error is None:
        for choice in generation.choices:
            metrics.request_success[str(choice.finish_reason)] += 1
    elif error.status == STATUS_CLIENT_GONE:
        metrics.request_success["abort"] += len(generation.choices)
    else:
        metrics.request_errors[error.code or str(error.status)] += 1
    if not request_logger.isEnabledFor(logging.INFO):
        return
    timings = generation.timings()
    request_logger.info(
        "%s %d",
        exchange.route,
        200 if error is None else error.status,
        extra={
            "fields": {
                "request_id": exchange.request_id,
                "prompt": usage.num_prompt_tokens,
                "cached": usage.num_cached_tokens,
                "output": usage.num_output_tokens,
                "finish": "/".join(sorted({str(c.finish_reason) for c in generation.choices if c.finish_reason}))
                or None,
                "queue_ms": round(timings.queue_seconds * 1e3, 1),
                "prefill_ms": round(timings.prefill_seconds * 1e3, 1),
                "total_ms": round(seconds * 1e3, 1),
                "tok_per_s": timings.to_json()["predicted_per_second"],
                "ignored_fields": ",".join(exchange.ignored_fields) or None,
                "error": None if error is None else error.message,
            }
        },
    )
