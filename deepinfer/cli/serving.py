"""The server inside this process: in the foreground for `serve`, in a thread for `chat` and `generate`.

The port is bound first and answers /health at once; the model loads in a thread, and /ready turns green with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from deepinfer import __version__
from deepinfer.config import EngineConfig
from deepinfer.errors import ConfigError

if TYPE_CHECKING:
    from deepinfer_api.launch import LoadedModel

LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to serve.

    Attributes:
        settings: fields of `deepinfer_api.settings.ServerSettings` that the command line gives.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    log_level: str = "info"
    log_json: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


class ModelLoader:
    """Loads a model in a thread, so that the server answers meanwhile.

    Attributes:
        loaded: the model, once it is there.
        error: why it is not.
    """

    def __init__(self, config: EngineConfig, console: Console | None) -> None:
        self.loaded: LoadedModel | None = None
        self.error: BaseException | None = None
        self._config = config
        self._console = console
        self._has_server = threading.Event()
        self._on_end: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._load, name="deepinfer-load", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether it still loads."""
        return self._thread.is_alive()

    def call_at_end(self, on_end: Callable[[], None]) -> None:
        """Call `on_end` in the loading thread when it has ended, well or not; must be said once."""
        self._on_end = on_end
        self._has_server.set()

    def _load(self) -> None:
        try:
            from deepinfer_api.launch import load_model

            with _progress_bar(self._console) as report:
                self.loaded = load_model(self._config, progress=report)
        except BaseException as error:
            self.error = error
        self._has_server.wait()
        if self._on_end is not None:
            self._on_end()


def run_foreground(config: EngineConfig, options: ServeOptions) -> None:
    """Serve until a signal.

    Raises:
        EngineError: the port, the options or the model are not usable; one sentence says why.
    """
    begin = time.monotonic()
    if options.log_level not in LOG_LEVELS:
        raise ConfigError(f"--log-level must be one of {', '.join(LOG_LEVELS)}, but is {options.log_level!r}")
    from deepinfer_api.listening import bind, url_of
    from deepinfer_api.settings import ServerSettings

    settings = ServerSettings.from_env(model_name=config.served_model_name, **options.settings)
    listener = bind(options.host, options.port)
    console = None if options.log_json else Console(stderr=True, highlight=False)
    _say(console, f"open-deepinfer {__version__}, loading {config.model}")
    # Start-up makes objects that stay; collecting garbage among them is wasted time.
    gc.disable()
    loader = ModelLoader(config, console)
    # The loading thread waits for files and native code most of the time; the web framework is imported meanwhile.
    from deepinfer_api.app import create_app
    from deepinfer_api.logs import configure_logging
    from deepinfer_api.server import DrainingServer

    configure_logging(options.log_level, as_json=options.log_json)
    # Its lines are among those printed below.
    logging.getLogger("deepinfer.engine.build").setLevel(logging.INFO if options.log_json else logging.WARNING)
    app = create_app(None, None, settings)
    server = DrainingServer(app)

    def on_end() -> None:
        gc.enable()
        gc.freeze()
        if loader.loaded is None:
            server.should_exit = True
            return
        app.state.services.attach(loader.loaded.backend, loader.loaded.codec, default_name=loader.loaded.name)
        _say(
            console,
            *_ready_lines(loader.loaded, url_of(listener), bool(settings.api_keys), time.monotonic() - begin),
        )

    loader.call_at_end(on_end)
    server.run(sockets=[listener])
    if loader.error is not None:
        raise loader.error
    if loader.loaded is not None:
        asyncio.run(loader.loaded.backend.close())
    elif loader.is_busy:
        # The loading thread cannot be stopped; nothing of it needs to be saved.
        sys.stderr.flush()
        os._exit(0)


def _ready_lines(model: LoadedModel, url: str, needs_key: bool, seconds: float) -> list[str]:
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    body = f'{{"model": "{model.name}", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
    return [
        f"  model       {model.name}",
        f"  executor    {model.executor}",
        f"  {model.kv_cache}",
        f"  ready in    {seconds:.1f} s",
        "",
        f"  playground  {url}/",
        f"  try         curl {url}/v1/chat/completions{key} -H 'content-type: application/json' -d '{body}'",
        "",
    ]


def _say(console: Console | None, *lines: str) -> None:
    if console is not None:
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)


@contextlib.contextmanager
def _progress_bar(console: Console | None) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal, silence elsewhere; yields the callback of `load_model`."""
    if console is None or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("  weights"), BarColumn(), DownloadColumn(binary_units=True), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("weights", total=None)

        def report(num_done: int, num_all: int) -> None:
            progress.update(task, completed=num_done, total=num_all)

        yield report


@contextlib.contextmanager
def background_server(config: EngineConfig, console: Console) -> Iterator[str]:
    """Serve a model on a free port of this machine for as long as the block runs; yields the URL.

    Raises:
        EngineError: the model is not usable.
    """
    from deepinfer_api.app import create_app
    from deepinfer_api.launch import load_model
    from deepinfer_api.listening import bind, url_of
    from deepinfer_api.server import DrainingServer
    from deepinfer_api.settings import ServerSettings

    with _progress_bar(console) as report:
        model = load_model(config, progress=report)
    listener = bind("127.0.0.1", 0)
    app = create_app(model.backend, model.codec, ServerSettings(model_name=model.name))
    server = DrainingServer(app)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), name="deepinfer-server", daemon=True)
    thread.start()
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        asyncio.run(model.backend.close())
