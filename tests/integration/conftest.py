"""The real application with the real codec over single bytes; only the engine is replaced by a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from deepinfer_api.app import create_app
from deepinfer_api.backends.scripted import ScriptedBackend
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.asgi import AsgiAnswer, AsgiClient
from deepinfer_api.testing.byte_codec import EOS_ID, make_byte_codec
from deepinfer_api.testing.scripts import text_script
from deepinfer_api.testing.stream_rules import StreamedAnswer, check_stream

CODEC = make_byte_codec()


@dataclass
class Server:
    """An application in process, its backend, and ways to ask it."""

    app: Any
    backend: ScriptedBackend
    client: AsgiClient

    async def stream(self, path: str, body: dict[str, Any], **rules: Any) -> tuple[AsgiAnswer, StreamedAnswer]:
        """POST with `stream` on, check every rule, and return the raw and the accumulated answer."""
        options = body.get("stream_options") or {}
        answer = await self.client.post(path, body | {"stream": True})
        assert answer.status == 200, answer.body
        return answer, check_stream(
            answer.writes,
            answer.headers,
            is_chat="chat" in path,
            include_usage=bool(options.get("include_usage") or options.get("continuous_usage_stats")),
            continuous_usage=bool(options.get("continuous_usage_stats")),
            **rules,
        )


MakeServer = Callable[..., Server]


@pytest.fixture
def make_server() -> MakeServer:
    """Build a server around a script (or a text to emit), with given settings and backend fields."""

    def make(
        script: Any = "Hello!", *, codec: Any = None, backend: dict[str, Any] | None = None, **settings: Any
    ) -> Server:
        if isinstance(script, str):
            script = text_script(script)
        scripted = ScriptedBackend(script, eos_token_ids=frozenset({EOS_ID}), **(backend or {}))
        app = create_app(scripted, codec or CODEC, ServerSettings(**({"model_name": "m"} | settings)))
        return Server(app, scripted, AsgiClient(app))

    return make
