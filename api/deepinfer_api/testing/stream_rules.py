"""The rules that every stream of this server keeps, as one function that a test runs on each stream it makes.

It takes the single writes of a stream, checks framing and the grammar of chat or completion chunks, and returns what a
client would have put together from them. A broken rule is an AssertionError that names the rule (S1 to S6 about
framing, C1 to C11 about chat chunks; completions keep the same rules where they apply).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter"})


@dataclass(slots=True)
class StreamedChoice:
    """One output as a client sees it in the end."""

    text: str = ""
    role: str | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    completion_logprobs: dict[str, list[Any]] = field(default_factory=dict)
    token_ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class StreamedAnswer:
    """A whole stream as a client sees it in the end.

    Attributes:
        choices: by index.
        error: the error object that ended the stream, or None.
        num_comments: keep-alive comments.
        identity: the keys that are equal in each chunk.
    """

    choices: dict[int, StreamedChoice] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    timings: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    num_comments: int = 0
    num_chunks: int = 0
    identity: tuple[Any, ...] | None = None


def check_stream(
    writes: Sequence[bytes],
    headers: Mapping[str, str],
    *,
    is_chat: bool,
    include_usage: bool = False,
    continuous_usage: bool = False,
    allow_replacement: bool = False,
    expect_error: bool = False,
) -> StreamedAnswer:
    """Check a complete stream.

    Args:
        writes: bodies of the single writes.
        headers: headers of the answer, names in lower case.
        is_chat: chat completion chunks, else completion chunks.
        include_usage, continuous_usage: what the request's `stream_options` said.
        allow_replacement: the model's bytes are no UTF-8, so U+FFFD may occur.
        expect_error: the stream ends in an error frame instead of the end mark.

    Raises:
        AssertionError: a rule is broken.
    """
    assert headers["content-type"].startswith("text/event-stream"), "S1: content type"
    assert headers["cache-control"] == "no-cache", "S1: cache-control"
    assert headers["x-accel-buffering"] == "no", "S1: x-accel-buffering"
    assert "content-encoding" not in headers, "S1: compressed"
    answer = StreamedAnswer()
    is_done = False
    for frame in _frames(writes):
        assert not is_done, f"C6: {frame!r} after the end mark"
        assert answer.error is None, f"C8: {frame!r} after the error frame"
        if frame.startswith(b":"):
            answer.num_comments += 1
            continue
        assert frame.startswith(b"data: "), f"S4: no data line: {frame!r}"
        assert b"\n" not in frame, f"S4: data on several lines: {frame!r}"
        if frame == b"data: [DONE]":
            is_done = True
            continue
        text = frame[6:].decode("utf-8")
        assert text.splitlines() == [text], f"S4: a character that readers take for a line end: {text!r}"
        assert allow_replacement or "\ufffd" not in text, f"S3: U+FFFD in {text!r}"
        chunk = json.loads(text)
        if "error" in chunk:
            answer.error = _checked_error(chunk)
            continue
        _take_chunk(answer, chunk, is_chat, include_usage, continuous_usage)
    if expect_error:
        assert answer.error is not None, "D4: no error frame"
        assert not is_done, "C8: an end mark after the error"
        return answer
    assert answer.error is None, f"unexpected error {answer.error}"
    assert is_done, "C6: no end mark"
    for index, choice in answer.choices.items():
        assert choice.finish_reason in FINISH_REASONS, f"C2: choice {index} has no final chunk"
        assert not is_chat or choice.role == "assistant", f"C1: choice {index} has no role"
    assert (answer.usage is not None) == include_usage, "C7: usage chunk"
    return answer


def _frames(writes: Sequence[bytes]) -> list[bytes]:
    frames: list[bytes] = []
    for write in writes:
        assert write.endswith(b"\n\n"), f"S2: a frame is split over writes: {write!r}"
        assert b"\r" not in write, f"S2: carriage return in {write!r}"
        frames.extend(write[:-2].split(b"\n\n"))
    return frames


def _checked_error(chunk: Mapping[str, Any]) -> dict[str, Any]:
    error: dict[str, Any] = chunk["error"]
    assert set(chunk) == {"error"}, "C8: keys beside error"
    assert {"message", "type", "code", "param"} <= set(error), f"C8: keys of {error}"
    assert error["message"], "C8: empty message"
    return error


def _take_chunk(
    answer: StreamedAnswer, chunk: Mapping[str, Any], is_chat: bool, include_usage: bool, continuous_usage: bool
) -> None:
    answer.num_chunks += 1
    identity = (chunk["id"], chunk["created"], chunk["model"], chunk["object"])
    assert chunk["object"] == ("chat.completion.chunk" if is_chat else "text_completion"), "C1: object"
    assert answer.identity in (None, identity), f"C1: {identity} after {answer.identity}"
    answer.identity = identity
    if chunk.get("timings") is not None:
        answer.timings = chunk["timings"]
    assert answer.usage is None, "C7: a chunk after the usage chunk"
    if not chunk["choices"]:
        assert include_usage, "C7: an empty chunk that nobody asked for"
        answer.usage = check_usage(chunk["usage"])
        return
    assert ("usage" in chunk) == include_usage, "C7: usage key"
    if include_usage:
        assert (chunk["usage"] is not None) == continuous_usage, "C7: usage of a chunk with choices"
    if continuous_usage:
        check_usage(chunk["usage"])
    assert len(chunk["choices"]) == 1, "one choice a chunk"
    _take_choice(answer, chunk["choices"][0], is_chat)


def _take_choice(answer: StreamedAnswer, shown: Mapping[str, Any], is_chat: bool) -> None:
    index = shown["index"]
    is_first = index not in answer.choices
    choice = answer.choices.setdefault(index, StreamedChoice())
    assert choice.finish_reason is None, f"C2: choice {index} goes on after its final chunk"
    logprobs = shown["logprobs"]
    if is_chat:
        delta = shown["delta"]
        assert not is_first or delta.get("role") == "assistant", f"C1: first chunk of choice {index}"
        choice.role = delta.get("role", choice.role)
        choice.text += delta.get("content") or ""
        if logprobs is not None:
            choice.logprobs.extend(logprobs["content"])
    else:
        choice.text += shown["text"]
        for key, values in (logprobs or {}).items():
            choice.completion_logprobs.setdefault(key, []).extend(values)
    choice.token_ids.extend(shown.get("token_ids") or ())
    choice.finish_reason = shown["finish_reason"]
    choice.stop_reason = shown.get("stop_reason", choice.stop_reason)


def check_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Check the sums and bounds of a usage object (C7) and return it."""
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], f"C7: total of {usage}"
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"], f"C7: cached of {usage}"
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 0 <= reasoning <= usage["completion_tokens"], f"C7: reasoning of {usage}"
    return dict(usage)
