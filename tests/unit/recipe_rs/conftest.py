"""What the tests of the codec share: small tokenizers, image files, a server on this machine."""

from __future__ import annotations

import http.server
import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import recipe_rs

DATA = Path(__file__).parents[3] / "recipe-rs" / "tests" / "data"


@pytest.fixture(scope="session")
def small_json() -> str:
    """A `tokenizer.json` with 600 tokens and DeepSeek's pre-tokenizer."""
    return (DATA / "bpe_small.json").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def small(small_json: str) -> recipe_rs.Tokenizer:
    return recipe_rs.Tokenizer.from_str(small_json)


@pytest.fixture(scope="session")
def vectors() -> dict:
    """Texts and the ids that the reference gives them with each pre-tokenizer."""
    return json.loads((DATA / "tokenizer_vectors.json").read_text(encoding="utf-8"))


def make_png(width: int, height: int, colour: tuple[int, int, int] = (200, 10, 30)) -> bytes:
    """A PNG file of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes(colour) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="session")
def png() -> Callable[..., bytes]:
    """Makes PNG files: png(width, height, colour)."""
    return make_png


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers by path: an image, a status, a chain of redirects, a body that is too long or breaks off."""

    def log_message(self, *arguments: object) -> None:
        """Be silent."""

    def do_GET(self) -> None:
        name, _, argument = self.path.lstrip("/").partition("/")
        if name == "png":
            self._answer(200, make_png(100, 60))
        elif name == "status":
            self._answer(int(argument), b"")
        elif name == "redirects":
            left = int(argument)
            self._answer(302, b"", Location=f"/redirects/{left - 1}" if left > 1 else "/png")
        elif name == "to":
            self._answer(302, b"", Location=argument.replace("!", "://", 1))
        elif name == "long":
            self._answer(200, bytes(int(argument)))
        elif name == "unsized":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(int(argument)))
        elif name == "broken":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x")
        else:
            self._answer(404, b"")

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="session")
def image_server() -> Iterator[str]:
    """URL of a server on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def unused_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
