"""Random bodies of Chat Completions."""

from __future__ import annotations

import random
from typing import Any

from tests.parity.conversations import arguments, text
from tests.parity.request_pieces import EFFORTS, IMAGE_URLS, MODELS, PNG, SCHEMAS, maybe, sampling, some, texts


def _part(rng: random.Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.75:
        return {"type": "text", "text": text(rng, 3)}
    if kind < 0.95:
        detail = some(rng, 0.5, detail=rng.choice(["low", "high", "auto", "original"]))
        return {"type": "image_url", "image_url": {"url": rng.choice(IMAGE_URLS), **detail}}
    return {"type": "file", "file_data": PNG}


def _content(rng: random.Random) -> Any:
    return text(rng) if rng.random() < 0.6 else [_part(rng) for _ in range(rng.randrange(4))]


def _calls(rng: random.Random) -> list[dict[str, Any]]:
    ids = rng.sample(["1", "2", "10", "a", "call_0", ""], rng.randrange(1, 4))
    calls = [
        {"id": id_, "type": "function", "function": {"name": rng.choice("fgh"), "arguments": arguments(rng)}}
        for id_ in ids
    ]
    turn = {
        "role": "assistant",
        "tool_calls": calls,
        **some(rng, 0.5, content=rng.choice([None, "", texts(rng)])),
        **some(rng, 0.5, reasoning_content=text(rng)),
    }
    rng.shuffle(ids)
    return [turn, *({"role": "tool", "tool_call_id": id_, "content": _content(rng)} for id_ in ids)]


def _messages(rng: random.Random) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.random()
        if kind < 0.55:
            messages.append({"role": "system" if kind < 0.2 else "user", "content": _content(rng)})
        elif kind < 0.62:
            messages.append({"role": "latest_reminder", "content": text(rng)})
        elif kind < 0.8:
            reasoning = some(rng, 0.5, reasoning_content=text(rng))
            messages.append({"role": "assistant", "content": texts(rng), **reasoning})
        else:
            messages.extend(_calls(rng))
    if rng.random() < 0.1:
        reasoning = some(rng, 0.5, reasoning_content=text(rng))
        messages.append({"role": "assistant", "content": rng.choice(["", text(rng)]), "prefix": True, **reasoning})
    return messages


def _tools(rng: random.Random) -> list[dict[str, Any]]:
    strict = rng.choice([None, None, True, False])
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                **some(rng, 0.6, description=text(rng)),
                **some(rng, 0.8, parameters=rng.choice(SCHEMAS)),
                **some(rng, 0.1 if strict is None else 1, strict=rng.random() < 0.5 if strict is None else strict),
            },
        }
        for name in rng.sample(["f", "g", "h-1", "X_"], rng.randrange(1, 4))
    ]


def chat_body(rng: random.Random) -> dict[str, Any]:
    """A random body, valid more often than not."""
    body: dict[str, Any] = {"model": rng.choice(MODELS), "messages": _messages(rng)}
    schema = {"name": "n", "schema": rng.choice(SCHEMAS), **some(rng, 0.5, strict=rng.random() < 0.5)}
    formats: list[Any] = [{"type": "text"}, {"type": "json_object"}, {"type": "regex", "regex": "a+"}]
    formats.append({"type": "json_schema", "json_schema": schema})
    choices = ["none", "auto", "required", {"type": "function", "function": {"name": "f"}}]
    maybe(rng, 0.3, body, "thinking", lambda: {"type": rng.choice(["enabled", "disabled", "adaptive"])})
    maybe(rng, 0.3, body, "reasoning_effort", lambda: rng.choice(EFFORTS))
    maybe(rng, 0.3, body, "tools", lambda: _tools(rng))
    maybe(rng, 0.3, body, "tool_choice", lambda: rng.choice(choices))
    maybe(rng, 0.2, body, "response_format", lambda: rng.choice(formats))
    sampling(rng, body, "max_tokens")
    maybe(rng, 0.1, body, "seed", lambda: rng.choice([0, 1, 2**63 - 1]))
    maybe(rng, 0.2, body, "stop", lambda: rng.choice(["x", ["a", "b"], [], None, ["x"] * 16]))
    if body.get("stream"):
        maybe(rng, 0.5, body, "stream_options", lambda: {"include_usage": True})
    if rng.random() < 0.1:
        body["logprobs"] = True
        maybe(rng, 0.5, body, "top_logprobs", lambda: rng.randrange(21))
    for key, choices_of_key in {"n": [1], "frequency_penalty": [0, -2, 2, 0.5], "user": ["u"]}.items():
        maybe(rng, 0.1, body, key, lambda given=choices_of_key: rng.choice(given))
    return body
