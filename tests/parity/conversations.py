"""Random texts, JSON values and conversations; pure data, so that both codecs can build their own objects."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

SPECIAL_SPELLINGS = [
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<think>",
    "</think>",
    "<｜System｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜latest_reminder｜>",
    "｜DSML｜",
    "<｜image｜>",
    "<｜ref｜>",
    "<｜/ref｜>",
    "<｜box｜>",
    "<｜/box｜>",
    "<｜point｜>",
    "<｜/point｜>",
    "<｜polygon｜>",
    "<｜/polygon｜>",
]
PIECES = [
    "",
    "a",
    "b c",
    "\n",
    "\n\n",
    " ",
    "é",
    "日本",
    "🌍",
    '"',
    "\\",
    "</｜DSML｜parameter>",
    "</tool_result>",
    "<｜DSML｜ calls>",
    '{"a": 1}',
    "{}",
    "json",
    "\u2028",
    "\x7f",
    "\x00",
    "1e-7",
    "<IMG>",
    *SPECIAL_SPELLINGS,
]
ODD_FLOATS = [1e-5, 1e-4, 0.00012, 1e15, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, -0.0]
ODD_ARGUMENTS = [
    "",
    "[]",
    "null",
    "{",
    '{"a":NaN}',
    '{"a":1e400}',
    '{"a":1}x',
    '{"a":"\\ud83d"}',
    '{"a":1,"a":2,"b":3}',
    ' {"a":1} ',
    '{"a":12345678901234567890123,"b":1e5,"c":-0}',
]
RENAMED = ["bos", "eos", "thinking_start", "thinking_end", "system", "user", "assistant", "dsml", "image", "ref"]
CALL_IDS = ["1", "2", "10", "call_01", "", "b", "a"]


def text(rng: random.Random, pieces: int = 4) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(pieces)))


def number(rng: random.Random) -> int | float:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randrange(-5, 100)
    if kind == 1:
        return rng.randrange(-(2**63), 2**64)
    if kind == 2:
        return rng.random() * 10.0 ** rng.randrange(-12, 25)
    if kind == 3:
        return 10.0 ** rng.randrange(-20, 25)
    if kind == 4:
        return rng.choice(ODD_FLOATS)
    return float(rng.randrange(2**53, 2**60))


def value(rng: random.Random, depth: int = 3) -> Any:
    """A random JSON value of at most `depth` levels."""
    kind = rng.randrange(8 if depth > 0 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind in (2, 3):
        return number(rng)
    if kind in (4, 5):
        return text(rng)
    if kind == 6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {text(rng, 3): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def arguments(rng: random.Random) -> str:
    """The arguments of a call: mostly a JSON object, sometimes anything."""
    if rng.random() < 0.3:
        return rng.choice([*ODD_ARGUMENTS, text(rng)])
    names = [text(rng, 3) if rng.random() < 0.5 else rng.choice(["a", "b", "city"]) for _ in range(rng.randrange(4))]
    return json.dumps({name: value(rng) for name in names}, ensure_ascii=rng.random() < 0.5)


@dataclass
class ConversationPlan:
    """What a conversation holds: class names with positional and keyword arguments."""

    messages: list[tuple[str, list[Any], dict[str, Any]]] = field(default_factory=list)
    tools: list[dict[str, Any]] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    renamed_tokens: dict[str, str] | None = None


def _images(rng: random.Random) -> list[tuple[str, Any, str]]:
    kinds = [("DataUrlImageSource", "data:,x"), ("UrlImageSource", "http://x/y"), ("BytesImageSource", b"zz")]
    details = ["low", "high", "original", "auto"]
    return [(*rng.choice(kinds), rng.choice(details)) for _ in range(rng.choice([0, 0, 0, 1, 2]))]


def _tool(rng: random.Random) -> dict[str, Any]:
    return {
        "name": rng.choice(["f", "g", 'get "x"', text(rng)]),
        "description": rng.choice([None, "d", text(rng)]),
        "parameters": value(rng) if rng.random() < 0.7 else None,
        "strict": rng.choice([None, True, False]),
        "defer_loading": rng.random() < 0.2,
    }


def _message(rng: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    kind = rng.choice("ssuuuaaattttlp")
    marks = {"image_token": rng.choice([None, None, "<IMG>"])}
    if kind == "s":
        tools = [_tool(rng) for _ in range(rng.randrange(3))] if rng.random() < 0.3 else None
        return "SystemMessage", [text(rng, 6), _images(rng), tools], marks
    if kind == "u":
        return "UserMessage", [text(rng, 6), _images(rng)], marks
    if kind == "t":
        return "ToolMessage", [text(rng, 6), rng.choice([*CALL_IDS, None]), _images(rng)], marks
    if kind == "l":
        return "LatestReminderMessage", [text(rng, 6)], {}
    calls = None
    if rng.random() < 0.5:
        names = ["f", "g", text(rng)]
        calls = [(rng.choice(CALL_IDS), rng.choice(names), arguments(rng)) for _ in range(rng.randrange(4))]
    is_prefix = kind == "p" or rng.random() < 0.05
    content, reasoning = rng.choice(["", text(rng, 6)]), rng.choice([None, "", text(rng, 6)])
    return "AssistantMessage", [content, reasoning, calls, is_prefix], {}


def plan(rng: random.Random) -> ConversationPlan:
    """A random conversation with messages of all roles in any order."""
    messages = [_message(rng) for _ in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 8]))]
    settings: dict[str, Any] = {
        "thinking_mode": rng.random() < 0.5,
        "tool_choice": rng.choice(["auto", "auto", "none", "required"]),
        "reasoning_effort": rng.choice([None, "low", "high", "xhigh", "max"]),
    }
    response = rng.choice(["text", "text", "text", "json_object", "schema", "regex"])
    if response == "schema":
        # An absent schema is what None means to both codecs.
        settings["response_schema"] = value(rng) or {}
    elif response == "regex":
        settings["response_regex"] = "a+"
    else:
        settings["response_format"] = response
    tools = [_tool(rng) for _ in range(rng.randrange(4))] if rng.random() < 0.5 else None
    renamed = None
    if rng.random() < 0.15:
        renamed = {name: rng.choice([f"@{name}", "<<x>>", f"<{name}>"]) for name in rng.sample(RENAMED, 4)}
    return ConversationPlan(messages, tools, settings, renamed)


def build(codec: ModuleType, planned: ConversationPlan) -> Any:
    """The conversation as an object of `codec`."""

    def images(described: list[tuple[str, Any, str]]) -> list[Any]:
        return [getattr(codec, kind)(data, detail) for kind, data, detail in described]

    def tools(described: list[dict[str, Any]] | None) -> list[Any] | None:
        return None if described is None else [codec.ToolDefinition(**tool) for tool in described]

    messages = []
    for kind, positional, keywords in planned.messages:
        made = list(positional)
        if kind in ("SystemMessage", "UserMessage"):
            made[1] = images(made[1])
        if kind == "SystemMessage":
            made[2] = tools(made[2])
        if kind == "ToolMessage":
            made[2] = images(made[2])
        if kind == "AssistantMessage" and made[2] is not None:
            made[2] = [codec.ToolCall(*call) for call in made[2]]
        messages.append(getattr(codec, kind)(*made, **keywords))
    return codec.Conversation(messages, tools=tools(planned.tools), **planned.settings)
