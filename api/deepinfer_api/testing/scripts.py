"""Scripts for `ScriptedBackend` that speak the byte vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepinfer_api.backends.scripted import Script, ScriptedRequest, ScriptStep
from deepinfer_api.testing.byte_codec import EOS_ID, byte_ids


def form_script(request: ScriptedRequest) -> Iterator[ScriptStep]:
    """Emit a short output that has the form the request asks for: strings end early, objects are as empty as can be."""
    if request.constraint is None:
        yield from text_script("Hello!")(request)
        return
    matcher = request.constraint.make_matcher()
    output: list[int] = []
    while True:
        mask = matcher.compute_mask(output)
        allowed = [id_ for id_ in range(259) if mask is None or mask[id_ // 8] >> id_ % 8 & 1]
        if EOS_ID in allowed:
            yield [EOS_ID]
            return
        is_in_string = output.count(ord('"')) % 2 == 1
        wanted = ord('"') if is_in_string else ord("}")
        visible = [id_ for id_ in allowed if 0x20 < id_ < 0x7F]
        output.append(wanted if wanted in allowed else (visible or allowed)[0])
        yield output[-1:]


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
