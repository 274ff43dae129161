"""The log: one line for each finished request, one for each busy window, as text or JSON. Never prompt text."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

from deepinfer_api.errors import STATUS_CLIENT_GONE, ApiError
from deepinfer_api.exchange import Exchange
from deepinfer_api.generation import Generation

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
