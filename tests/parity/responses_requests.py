"""Random bodies of Responses."""

from __future__ import annotations

import random
from typing import Any

from tests.parity.conversations import arguments, text, value
from tests.parity.request_pieces import EFFORTS, IMAGE_URLS, MODELS, SCHEMAS, maybe, sampling, some


def _parts(rng: random.Random, text_types: list[str], with_images: bool = True) -> Any:
    if rng.random() < 0.5:
        return text(rng)
    parts: list[dict[str, Any]] = []
    for _ in range(rng.randrange(4)):
        kind = rng.random()
        if kind < 0.7 or not with_images:
            parts.append({"type": rng.choice(text_types), "text": text(rng, 3)})
        elif kind < 0.9:
            parts.append({"type": "input_image", "image_url": rng.choice(IMAGE_URLS), **some(rng, 0.3, detail="low")})
        else:
            parts.append({"type": "input_file", "file_id": "x"})
    return parts


def _function(rng: random.Random, name: str, strict: bool | None) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        **some(rng, 0.6, description=text(rng)),
        **some(rng, 0.8, parameters=rng.choice(SCHEMAS)),
        **({} if strict is None else {"strict": strict}),
        **some(rng, 0.1, defer_loading=True),
    }


def _tool(rng: random.Random, name: str, strict: bool | None) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.55:
        return _function(rng, name, strict)
    if kind < 0.63:
        return {"type": "custom", "name": "apply_patch", "description": "q"}
    if kind < 0.75:
        inner = [_function(rng, own, strict) for own in rng.sample(["a", "b", "c"], rng.randrange(3))]
        return {
            "type": "namespace",
            "name": rng.choice(["ns", "n2"]),
            **some(rng, 0.7, description=text(rng)),
            "tools": inner,
        }
    if kind < 0.85:
        return {
            "type": "tool_search",
            **some(rng, 0.8, execution=rng.choice(["client", "server"])),
            **some(rng, 0.5, description="d"),
            **some(rng, 0.5, parameters=rng.choice(SCHEMAS)),
        }
    if kind < 0.93:
        search = rng.choice(["web_search", "web_search_2025_08_26"])
        return {"type": search, **some(rng, 0.3, search_context_size="low")}
    return {"type": rng.choice(["web_search_preview", "mcp", "file_search"])}


def _calls(rng: random.Random, strict: bool | None) -> list[dict[str, Any]]:
    items, outputs = [], []
    for id_ in rng.sample(["c1", "c2", "c10", "a"], rng.randrange(1, 4)):
        kind = rng.random()
        if kind < 0.6:
            call = {"type": "function_call", "name": rng.choice("fgh"), "arguments": arguments(rng)}
            items.append({**call, "call_id": id_, **some(rng, 0.2, namespace="ns")})
            outputs.append({"type": "function_call_output", "call_id": id_, "output": _parts(rng, ["input_text"])})
        elif kind < 0.8:
            name = rng.choice(["apply_patch", "q"])
            items.append({"type": "custom_tool_call", "call_id": id_, "name": name, "input": text(rng)})
            outputs.append({"type": "custom_tool_call_output", "call_id": id_, "output": _parts(rng, ["input_text"])})
        else:
            search = {"call_id": id_, "execution": "client"}
            found = [_tool(rng, name, strict) for name in rng.sample(["t1", "t2", "t3"], rng.randrange(3))]
            items.append({"type": "tool_search_call", **search, "arguments": {"q": value(rng, 1)}})
            outputs.append({"type": "tool_search_output", **search, "tools": found})
    rng.shuffle(outputs)
    return [*items, *outputs]


def _items(rng: random.Random, strict: bool | None) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    all_texts = ["input_text", "output_text"]
    for _ in range(rng.randrange(1, 5)):
        kind = rng.random()
        if kind < 0.35:
            role = rng.choice(["user", "user", "system", "developer"])
            items.append({"role": role, "content": _parts(rng, all_texts), **some(rng, 0.4, type="message")})
        elif kind < 0.5:
            items.append({"role": "assistant", "content": _parts(rng, all_texts, with_images=False)})
        elif kind < 0.62:
            parts = [{"type": "reasoning_text", "text": text(rng)} for _ in range(rng.randrange(3))]
            hidden = some(rng, 0.2, encrypted_content="z")
            items.append({"type": "reasoning", "summary": [], **some(rng, 0.8, content=parts), **hidden})
        elif kind < 0.68:
            items.append({"type": rng.choice(["web_search_call", "zzz", "item_reference"]), "id": "x"})
        else:
            items.extend(_calls(rng, strict))
    return items


def responses_body(rng: random.Random) -> dict[str, Any]:
    """A random body, valid more often than not."""
    strict = rng.choice([None, None, None, True, False])
    body: dict[str, Any] = {
        "model": rng.choice(MODELS),
        "input": _items(rng, strict) if rng.random() < 0.9 else text(rng),
    }
    schema = {"type": "json_schema", "name": "n", "schema": rng.choice(SCHEMAS)}
    formats = [{"type": "text"}, {"type": "json_object"}, {**schema, **some(rng, 0.5, strict=rng.random() < 0.5)}]
    choices = [
        *["none", "auto", "required", {"type": "web_search"}],
        *[{"type": "function", "name": "f"}, {"type": "custom", "name": "apply_patch"}],
    ]
    maybe(rng, 0.3, body, "instructions", lambda: text(rng))
    effort = some(rng, 0.8, effort=rng.choice(EFFORTS))
    maybe(rng, 0.35, body, "reasoning", lambda: {**effort, **some(rng, 0.3, summary="auto")})
    names = ["f", "g", "h-1", "X_"]
    tools = [_tool(rng, name, strict) for name in rng.sample(names, rng.randrange(1, 4))]
    maybe(rng, 0.45, body, "tools", lambda: tools)
    maybe(rng, 0.3, body, "tool_choice", lambda: rng.choice(choices))
    maybe(rng, 0.2, body, "text", lambda: {"format": rng.choice(formats), **some(rng, 0.3, verbosity="low")})
    sampling(rng, body, "max_output_tokens")
    maybe(rng, 0.1, body, "top_logprobs", lambda: rng.randrange(21))
    maybe(rng, 0.1, body, "user", lambda: "u")
    maybe(rng, 0.1, body, "store", lambda: False)
    maybe(rng, 0.05, body, "stop", lambda: ["x"])
    return body
