"""The process side of the server: event loop, signals, draining. Knows no model."""

from __future__ import annotations

import logging
import signal
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from deepinfer_api.errors import unavailable
from deepinfer_api.services import Services

KEEP_ALIVE_SECONDS = 75
"""Idle connections stay this long; longer than most clients' pools, so that they close first."""

logger = logging.getLogger("deepinfer_api.server")


class DrainingServer(uvicorn.Server):
    """Ends gently on the first signal: new work is refused, what runs may finish. The second signal ends at once."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=5,
                lifespan="off",
                ws="none",
            )
        )
        self._services: Services = app.state.services
        self._drain_deadline: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for SIGINT and SIGTERM."""
        if self._drain_deadline is not None:
            self._drain_deadline = 0.0
            return
        self.begin_drain()
        num_running = len(self._services.running)
        if num_running:
            again = "; press Ctrl-C again to stop now" if sig == signal.SIGINT else ""
            logger.warning("stopping after %d running request(s)%s", num_running, again)

    def begin_drain(self) -> None:
        """Refuse new work; the server ends when the running requests have, or after the drain timeout."""
        self._services.drain()
        self._drain_deadline = time.monotonic() + self._services.settings.drain_timeout_seconds

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; returns whether to leave the main loop."""
        if self._drain_deadline is not None:
            running = self._services.running
            if time.monotonic() >= self._drain_deadline:
                running.end_all(unavailable("the server is shutting down", "draining", 5))
                self.should_exit = True
            elif not len(running):
                self.should_exit = True
        return await super().on_tick(counter)
