"""Generators made from converted requests, and the settings that responses repeat, are those of the official codec."""

# ruff: noqa: RUF001

from __future__ import annotations

import collections
import json
import random
import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.parity.case_counts import cases
from tests.parity.chat_requests import chat_body
from tests.parity.messages_requests import messages_body
from tests.parity.responses_requests import responses_body

official = pytest.importorskip("deepseek_recipe", reason="the official codec is not installed: pip install .[parity]")
recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

pytestmark = pytest.mark.parity

MARKER = "｜DSML｜"
BODIES: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "ChatCompletionRequest": chat_body,
    "ResponsesRequest": responses_body,
    "MessagesRequest": messages_body,
}
# Tools whose calls are items of their own kinds.
OTHER_TOOLS = [
    {"type": "custom", "name": "apply_patch"},
    {"type": "tool_search", "execution": "client"},
    {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "g"}]},
]
ECHO_FIELDS = ["instructions", "max_output_tokens", "temperature", "top_p", "top_logprobs", "user"]


def output(rng: random.Random, request: Any) -> str:
    """What a model may write: a thought, an answer, calls of some of the tools."""
    names = [tool.name for tool in request.conversation.tools]
    calls = [
        f'<{MARKER} invoke name="{name}">\n<{MARKER} parameter name="input" string="true">v"</{MARKER} parameter>\n'
        f"</{MARKER} invoke>\n"
        for name in rng.sample(names, min(len(names), rng.randrange(3)))
    ]
    if request.parsing_options.starts_in_tool_calls:
        return f"{''.join(calls)}</{MARKER} calls>"
    thought = rng.choice(["", "why", "a\nb"]) + "</think>" if request.conversation.thinking_mode else ""
    block = f"\n\n<{MARKER} calls>\n{''.join(calls)}</{MARKER} calls>" if calls else ""
    return f"{thought}{rng.choice(['', 'Hi'])}{block}"


def normalized(text: str) -> str:
    text = re.sub(r'"(created|created_at|completed_at)":\d+', r'"\1":0', text)
    return re.sub(r"call_(\d\d)_(ET_)?[A-Za-z0-9]{24}", r"call_\1_\2ID", text)


def events(codec: ModuleType, request_class: str, body: dict[str, Any], seed: int) -> list[Any] | None:
    """Events of one response; None for a request that is refused."""
    cls = getattr(codec, request_class)
    try:
        request = cls(body)
        echo = request.echo() if request_class == "ResponsesRequest" else None
        converted = request.convert(codec.ConversionOptions())
    except (codec.ConversionError, ValueError):
        return None
    generator = cls.chunk_generator(converted, "id", "served")
    seen: list[Any] = []
    if echo is not None:
        generator = generator.with_echo(echo)
        seen += [getattr(echo, name) for name in ECHO_FIELDS]
    processor = codec.StreamProcessor(generator, converted.parsing_options)
    rng = random.Random(seed)
    text = output(rng, converted)
    for chunk in (
        codec.InferenceChunk.ready(system_fingerprint="fp"),
        codec.InferenceChunk.text(text, 3),
        codec.InferenceChunk.finish(codec.InferenceFinishReason.Stop),
    ):
        if not processor.finished:
            seen += [normalized(event.to_json()) for event in processor.push(chunk)]
    return seen


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("request_class", BODIES)
def test_streams_of_converted_requests_are_alike(
    request_class: str, coverage_table: Callable[[str, Mapping[str, int]], None]
) -> None:
    kinds: collections.Counter[str] = collections.Counter()
    for seed in range(cases(0.5)):
        body = BODIES[request_class](random.Random(seed))
        # What is read out of the answer has comparisons of its own.
        for name in ("stop", "stop_sequences", "response_format", "text"):
            body.pop(name, None)
        if request_class == "ResponsesRequest" and seed % 10 == 0:
            body = {**body, "tools": OTHER_TOOLS, "tool_choice": "auto"}
        theirs = events(official, request_class, body, seed)
        ours = events(recipe_rs, request_class, body, seed)
        if theirs is None or ours is None:
            kinds["refused"] += 1
            continue
        assert joined(ours) == joined(theirs), body
        kinds["equal"] += 1
        whole = str(theirs)
        kinds.update(kind for kind in ("custom_tool_call", "tool_search_call", '"namespace":"n') if kind in whole)
    coverage_table(f"generators, {request_class}", kinds)
    assert kinds["equal"] >= cases(0.5) // 10
    if request_class == "ResponsesRequest":
        assert min(kinds[kind] for kind in ("custom_tool_call", "tool_search_call", '"namespace":"n')) >= 20


def joined(seen: list[Any]) -> list[Any]:
    """The events, with the deltas of arguments joined: where a key is cut is ours to choose."""
    result: list[Any] = []
    arguments = ""
    for event in seen:
        found = re.search(r'"(?:partial_json|arguments|delta)":("(?:[^"\\]|\\.)*")', event) if is_delta(event) else None
        if found is not None:
            arguments += json.loads(found[1])
            continue
        if arguments:
            result.append(arguments)
            arguments = ""
        result.append(re.sub(r'"sequence_number":\d+', "", event) if isinstance(event, str) else event)
    return [*result, arguments]


def is_delta(event: Any) -> bool:
    kinds = ('"input_json_delta"', '"response.function_call_arguments.delta"', '"tool_calls":[{"index"')
    return isinstance(event, str) and any(kind in event for kind in kinds) and '"name"' not in event
