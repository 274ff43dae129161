"""Whom a client command talks to: a running server, or one that is started for it inside this process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepinfer.cli.engine_options import make_engine_config
from deepinfer.cli.http_client import HttpClient, StreamEvent
from deepinfer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Target:
    """A server and the model of it that is meant."""

    client: HttpClient
    model_name: str

    def stream_chat(
        self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any]
    ) -> AsyncIterator[StreamEvent]:
        """Events of a streamed chat answer."""
        body = {"model": self.model_name, "messages": messages, "stream": True, **options}
        return self.client.stream("/v1/chat/completions", body)

    def stream_completion(self, prompt: str, options: Mapping[str, Any]) -> AsyncIterator[StreamEvent]:
        """Events of a streamed completion."""
        return self.client.stream(
            "/v1/completions", {"model": self.model_name, "prompt": prompt, "stream": True, **options}
        )


@contextlib.contextmanager
def open_target(
    model: str | None, *, url: str | None, api_key: str | None, model_name: str | None, **engine_options: Any
) -> Iterator[Target]:
    """Reach the server at `url`, or load `model` and serve it on a free port while the block runs.

    Raises:
        EngineError: the server does not answer, or the model is not usable.
    """
    if url is not None:
        if model is not None:
            raise ConfigError(f"a model to load ({model}) and --url exclude each other; use --model to choose there")
        client = HttpClient(url, api_key=api_key)
        yield Target(client, model_name or asyncio.run(client.first_model()))
        return
    from rich.console import Console

    from deepinfer.cli.model_source import find_model
    from deepinfer.cli.serving import background_server

    for name in ("deepinfer", "deepinfer_api", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    config = make_engine_config(find_model(model), **engine_options)
    with background_server(config, Console(stderr=True, highlight=False)) as own_url:
        client = HttpClient(own_url)
        yield Target(client, asyncio.run(client.first_model()))
