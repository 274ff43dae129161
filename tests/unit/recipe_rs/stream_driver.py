"""Drives the output parser of `recipe_rs` and reads the answer back from all three protocols."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import recipe_rs

MARKER = "｜DSML｜"
APIS = ("chat", "responses", "messages")


@dataclass(frozen=True)
class Answer:
    """What a client sees: joined texts, calls as (name, JSON text of the arguments), and the end."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"


@dataclass
class Stream:
    """One finished stream."""

    answer: Answer
    accumulated: dict[str, Any]
    pushes: list[list[dict[str, Any]]]
    diagnostics: Any
    call_ids: list[str] = field(default_factory=list)


def block(*calls: str) -> str:
    """A V4.1 call block; each call comes from `call` or is written by hand."""
    return f"\n\n<{MARKER} calls>\n" + "\n".join(calls) + f"\n</{MARKER} calls>"


def call(name: str, *parameters: tuple[str, str, str]) -> str:
    """One call; parameters are (name, string attribute, value)."""
    lines = [f'<{MARKER} invoke name="{name}">']
    lines += [
        f'<{MARKER} parameter name="{key}" string="{attribute}">{value}</{MARKER} parameter>'
        for key, attribute, value in parameters
    ]
    return "\n".join([*lines, f"</{MARKER} invoke>"])


def generator(api: str, *, stage: str | None = None, compat: bool = True) -> Any:
    initial = getattr(recipe_rs.ThinkingInitialStage, stage) if stage else None
    if api == "chat":
        return recipe_rs.ChatCompletionChunkGenerator("id", "model", initial, call_id_seed=3, created=1)
    if api == "responses":
        return recipe_rs.ResponsesChunkGenerator(
            "id", "model", stage is not None, call_id_seed=3, created=1, compat=compat
        )
    return recipe_rs.MessagesChunkGenerator("id", "model", stage is not None, call_id_seed=3)


def drive(
    pieces: Iterable[str | Sequence[int]],
    *,
    api: str = "chat",
    stage: str | None = None,
    finish: str | None = "Stop",
    tokenizer: Any = None,
    **options: Any,
) -> Stream:
    """Pushes text pieces and lists of ids, and takes the response apart."""
    if stage:
        options["thinking_initial_stage"] = getattr(recipe_rs.ThinkingInitialStage, stage)
    source = generator(api, stage=stage, compat=options.get("compat", True))
    processor = recipe_rs.StreamProcessor(source, recipe_rs.ParsingOptions(**options), tokenizer)
    kinds = {
        "chat": recipe_rs.ChatCompletionResponse,
        "responses": recipe_rs.ResponsesResponse,
        "messages": recipe_rs.MessagesResponse,
    }
    response = kinds[api]("id", "model", 1, 0, 0)
    chunk = recipe_rs.InferenceChunk
    chunks = [chunk.text(piece, 1) if isinstance(piece, str) else chunk.tokens(piece) for piece in pieces]
    if finish:
        chunks.append(chunk.finish(getattr(recipe_rs.InferenceFinishReason, finish)))
    pushes = []
    for item in chunks:
        if processor.finished:
            break
        pushes.append(processor.push(item))
    pushes.append(processor.finish())
    texts = [[json.loads(event.to_json()) for event in push] for push in pushes]
    for push in pushes:
        for event in push:
            response.accumulate(event)
    accumulated = json.loads(response.to_json())
    return Stream(read_answer(accumulated, api), accumulated, texts, processor.diagnostics, call_ids(accumulated))


def read_answer(accumulated: dict[str, Any], api: str) -> Answer:
    if api == "chat":
        choice = accumulated["choices"][0]
        message = choice["message"]
        calls = [(found["function"]["name"], found["function"]["arguments"]) for found in message.get("tool_calls", [])]
        reasoning = message.get("reasoning_content") or ""
        return Answer(reasoning, message["content"] or "", tuple(calls), choice["finish_reason"])
    reasoning = content = ""
    calls = []
    for item in accumulated["output"] if api == "responses" else accumulated["content"]:
        match item["type"]:
            case "reasoning":
                reasoning += "".join(part["text"] for part in item["content"])
            case "thinking":
                reasoning += item["thinking"]
            case "message":
                content += "".join(part["text"] for part in item["content"])
            case "text":
                content += item["text"]
            case "function_call":
                calls.append((item["name"], item["arguments"]))
            case "tool_use":
                calls.append((item["name"], json.dumps(item["input"])))
            case other:
                raise AssertionError(f"unexpected item {other}")
    finish = accumulated["status"] if api == "responses" else accumulated["stop_reason"]
    return Answer(reasoning, content, tuple(calls), finish)


def call_ids(accumulated: dict[str, Any]) -> list[str]:
    text = json.dumps(accumulated)
    return [part.split('"')[0] for part in text.split('"call_')[1:]]


def deltas(stream: Stream, field_name: str) -> list[str]:
    """The non-empty text deltas of a Chat Completions stream."""
    found = []
    for push in stream.pushes:
        for event in push:
            for choice in event["choices"]:
                if choice["delta"].get(field_name):
                    found.append(choice["delta"][field_name])
    return found


def argument_deltas(stream: Stream) -> list[tuple[int, int, str]]:
    """(push, index of the call, fragment) of a Chat Completions stream."""
    return [
        (number, found["index"], found["function"]["arguments"])
        for number, push in enumerate(stream.pushes)
        for event in push
        for choice in event["choices"]
        for found in choice["delta"].get("tool_calls", [])
    ]


def splits(text: str) -> Iterator[list[str]]:
    """One piece, one character at a time, and every cut into two."""
    yield [text]
    yield list(text)
    for cut in range(1, len(text)):
        yield [text[:cut], text[cut:]]


def pieces_of(text: str, cuts: Iterable[int]) -> list[str]:
    borders = sorted({0, len(text), *(cut for cut in cuts if 0 < cut < len(text))})
    return [text[a:b] for a, b in pairwise(borders)]
