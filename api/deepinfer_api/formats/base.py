"""What the answer of a route looks like: the seam between `streaming` and the protocols."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, Protocol

from deepinfer_api.errors import ApiError
from deepinfer_api.generation import Choice, Generation, Piece

DONE_FRAME = b"data: [DONE]\n\n"
MIN_LOGPROB = -9999.0
"""JSON has no infinity; OpenAI writes this for a token that cannot occur."""

_LINE_SEPARATORS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class AnswerFormat(Protocol):
    """Builds the frames of a stream and the body without one from the same pieces."""

    def piece_frames(self, generation: Generation, choice: Choice, piece: Piece) -> bytes:
        """Frames for one piece; empty when nothing is to be shown."""
        ...

    def final_frames(self, generation: Generation) -> bytes:
        """Frames after the last piece, the end mark included."""
        ...

    def error_frames(self, error: ApiError) -> bytes:
        """Frames for a failure after the first byte."""
        ...

    def add(self, choice: Choice, piece: Piece) -> None:
        """Take one piece of an answer that is not streamed."""
        ...

    def body(self, generation: Generation) -> dict[str, Any]:
        """The whole answer, after every piece was added."""
        ...


def json_string(text: str) -> str:
    """`text` as a JSON string on one line.

    The three characters that some line readers take for a line end although JSON does not escape them are escaped.
    """
    encoded = encode_basestring(text)
    return encoded if encoded.isascii() else encoded.translate(_LINE_SEPARATORS)


def finite_logprob(logprob: float) -> float:
    """The value JSON can hold."""
    return logprob if logprob > MIN_LOGPROB else MIN_LOGPROB


def one_line(value: Mapping[str, Any]) -> str:
    """An object as JSON in ASCII on one line."""
    return json.dumps(value, separators=(",", ":"))


def error_frame(error: ApiError) -> bytes:
    """The frame that ends a stream which failed; no end mark follows it."""
    return f"data: {one_line(error.body())}\n\n".encode()
