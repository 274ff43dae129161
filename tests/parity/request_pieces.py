"""What the random requests of the three protocols have in common."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.parity.conversations import text, value

MODELS = ["DeepSeek-V4-Pro", "DeepSeek-V4.1-Flash"]
EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]
PNG = "data:image/png;base64,AAAA"
IMAGE_URLS = [
    PNG,
    "http://x/y",
    "https://a.b/c",
    "data:image/jpeg;base64,QUJD",
    "ftp://x",
    "data:image/png;base64,AAA*",
    "data:image/jpg;base64,AA",
    "data:image/PNG;base64,AAAA",
    "data:image/gif;base64,A A",
    "data:text/plain;base64,AAAA",
    "data:image/png,AAAA",
    "http://" + "a" * 8190,
]
STRING = {"type": "string"}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {}},
    {
        "type": "object",
        "properties": {"a": STRING, "b": {"type": ["string", "null"], "description": "d"}},
        "required": ["a", "b"],
    },
    {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer", "minimum": 1, "title": "x"}},
            "o": {
                "type": "object",
                "properties": {"z": {"type": "number", "default": 1.5}},
                "required": ["z"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/q"}},
        "required": ["a"],
        "$defs": {"q": {"type": "string", "enum": ["x", "y"]}},
    },
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "format": "email"}, {"type": "null"}]}}},
]
JUNK: list[Any] = [
    *[None, True, False, 0, 1, -1, 1.5, 2, 100, 2**40, 2**63, 0.95, "", "x", "a b", "f" * 129, "f" * 128],
    *["none", "auto", "required", "low", "high", "max", "minimal", "enabled", "disabled", "adaptive", "json"],
    *["text", "function", "json_object", "json_schema", "regex", "user", "assistant", "tool", "system"],
    *[[], {}, [1], ["a"], {"type": "text"}, {"type": "text", "text": "t"}, {"a": 1}],
]
KEYS = [
    *["prefix", "strict", "name", "id", "type", "role", "extra", "detail", "file_id", "file_data", "defer_loading"],
    *["description", "required", "additionalProperties", "properties", "enum", "format", "items", "anyOf", "default"],
    *["minLength", "pattern", "$schema", "$id", "$ref", "namespace", "encrypted_content", "status", "is_error"],
]


def maybe(rng: random.Random, chance: float, body: dict[str, Any], key: str, make: Callable[[], Any]) -> None:
    """Sets `key` with this chance."""
    if rng.random() < chance:
        body[key] = make()


def some(rng: random.Random, chance: float, **members: Any) -> dict[str, Any]:
    """The members with this chance, else none."""
    return members if rng.random() < chance else {}


def sampling(rng: random.Random, body: dict[str, Any], max_tokens_field: str) -> None:
    """Adds fields that all protocols know."""
    maybe(rng, 0.2, body, "temperature", lambda: rng.choice([0, 1, 2, 0.3, 1.5]))
    maybe(rng, 0.2, body, "top_p", lambda: rng.choice([1, 0.5, 0.95, 0.99, 0.0001]))
    maybe(rng, 0.2, body, max_tokens_field, lambda: rng.choice([1, 100, 393216]))
    maybe(rng, 0.1, body, "stream", lambda: rng.random() < 0.5)


def texts(rng: random.Random, kind: str = "text") -> Any:
    """Text as a string or as a list of parts."""
    if rng.random() < 0.7:
        return text(rng)
    return [{"type": kind, "text": text(rng, 3)} for _ in range(rng.randrange(4))]


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, member in members:
        yield from _paths(member, (*path, key))


def spoiled(rng: random.Random, body: dict[str, Any]) -> dict[str, Any]:
    """A copy of the body with one random place changed, removed, doubled or added."""
    body = copy.deepcopy(body)
    path = rng.choice([path for path in _paths(body) if path])
    holder: Any = body
    for key in path[:-1]:
        holder = holder[key]
    kind, key = rng.random(), path[-1]
    if kind < 0.25 and isinstance(holder, dict):
        del holder[key]
    elif kind < 0.35 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(rng.choice(holder)))
    elif kind < 0.4 and isinstance(holder, list):
        del holder[key]
    elif kind < 0.5 and isinstance(holder, dict):
        holder[rng.choice(KEYS)] = copy.deepcopy(rng.choice(JUNK))
    else:
        holder[key] = copy.deepcopy(rng.choice(JUNK)) if rng.random() < 0.7 else value(rng, 2)
    return body
