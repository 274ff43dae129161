"""Scripts for `ScriptedBackend` that speak the byte vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepinfer_api.backends.scripted import Script, ScriptedRequest, ScriptStep
from deepinfer_api.testing.byte_codec import EOS_ID, byte_ids


def text_script(text: str, *, sizes: Sequence[int] = (1,), ends: bool = True) -> Script:
    """Emit a text, `sizes` bytes a step in turn, and then the end token unless `ends` is false."""
    ids = byte_ids(text)

    def script(request: ScriptedRequest) -> Iterator[ScriptStep]:
        position, number = 0, 0
        while position < len(ids):
            size = sizes[number % len(sizes)]
            yield ids[position : position + size]
            position, number = position + size, number + 1
        if ends:
            yield [EOS_ID]

    return script
