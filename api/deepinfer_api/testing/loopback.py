"""An application on a real socket of this machine, in a thread of the test."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import FastAPI

from deepinfer_api.listening import bind, url_of
from deepinfer_api.server import DrainingServer

START_TIMEOUT_SECONDS = 20.0
STOP_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class LoopbackServer:
    """A running server.

    Attributes:
        url: where it listens.
        server: to drain or stop it.
        thread: ends when the server has.
    """

    url: str
    server: DrainingServer
    thread: threading.Thread


@contextlib.contextmanager
def serve_on_loopback(app: FastAPI) -> Iterator[LoopbackServer]:
    """Serve an application on a free port while the block runs.

    Raises:
        TimeoutError: it does not start or stop in time.
    """
    listener = bind("127.0.0.1", 0)
    server = DrainingServer(app)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), name="loopback-server", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise TimeoutError("the server did not start")
            time.sleep(0.005)
        yield LoopbackServer(url_of(listener), server, thread)
    finally:
        server.should_exit = True
        thread.join(STOP_TIMEOUT_SECONDS)
        listener.close()
        if thread.is_alive():
            raise TimeoutError("the server did not stop")
