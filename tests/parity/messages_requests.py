"""Random bodies of Messages."""

from __future__ import annotations

import random
from typing import Any

from tests.parity.conversations import text, value
from tests.parity.request_pieces import EFFORTS, MODELS, SCHEMAS, maybe, sampling, some

NAMES = ["f", "g", "h-1"]
MEDIA_TYPES = ["image/png", "image/jpg", "image/jpeg", "image/webp", "image/gif"]


def _image(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        data = rng.choice(["AAAA", "QUI=", "###", "AAA"])
        source = {"type": "base64", "media_type": rng.choice(MEDIA_TYPES), "data": data}
    else:
        source = {"type": "url", "url": rng.choice(["http://x/y", "https://q", "ftp://x", "http://", "http://x y"])}
    return {"type": "image", "source": source}


def _text(rng: random.Random) -> dict[str, Any]:
    return {"type": "text", "text": text(rng, 3), **some(rng, 0.2, cache_control={"type": "ephemeral"})}


def _block(rng: random.Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.6:
        return _text(rng)
    if kind < 0.85:
        return _image(rng)
    sources = [{"type": "base64", "media_type": "application/pdf", "data": "x"}, {"type": "url", "url": "u"}]
    return {"type": "document", "source": rng.choice(sources)}


def _thought(rng: random.Random) -> dict[str, Any]:
    return _text(rng) if rng.random() < 0.5 else {"type": "thinking", "thinking": text(rng), "signature": "s"}


def _result(rng: random.Random, id_: str) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": id_, **some(rng, 0.2, is_error=True)}
    kind = rng.random()
    if kind < 0.4:
        result["content"] = text(rng)
    elif kind < 0.9:
        parts = [_text(rng), _text(rng), _image(rng), {"type": "tool_reference", "tool_name": rng.choice(NAMES)}]
        result["content"] = [rng.choice(parts) for _ in range(rng.randrange(3))]
    return result


def _calls(rng: random.Random) -> list[dict[str, Any]]:
    ids = rng.sample(["t1", "t2", "t10", "a"], rng.randrange(1, 4))
    before = [_thought(rng) for _ in range(rng.randrange(3))]
    calls = [
        {"type": "tool_use", "id": id_, "name": rng.choice(NAMES), "input": value(rng, 2) if rng.random() < 0.3 else {}}
        for id_ in ids
    ]
    rng.shuffle(ids)
    after = [_block(rng) for _ in range(rng.randrange(2))]
    return [
        {"role": "assistant", "content": [*before, *calls]},
        {"role": "user", "content": [*(_result(rng, id_) for id_ in ids), *after]},
    ]


def _messages(rng: random.Random) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    addition = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": rng.choice(NAMES)}}
    for _ in range(rng.randrange(1, 5)):
        kind = rng.random()
        if kind < 0.4:
            blocks = [_block(rng) for _ in range(rng.randrange(1, 4))]
            messages.append({"role": "user", "content": text(rng) if rng.random() < 0.4 else blocks})
        elif kind < 0.5:
            blocks = [rng.choice([_text(rng), _text(rng), addition, _image(rng)]) for _ in range(rng.randrange(1, 3))]
            messages.append({"role": "system", "content": text(rng) if rng.random() < 0.5 else blocks})
        elif kind < 0.7:
            blocks = [_thought(rng) for _ in range(rng.randrange(1, 4))]
            messages.append({"role": "assistant", "content": text(rng) if rng.random() < 0.4 else blocks})
        else:
            messages.extend(_calls(rng))
    return messages


def _tools(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "input_schema": rng.choice(SCHEMAS),
            **some(rng, 0.6, description=text(rng)),
            **some(rng, 0.1, strict=True),
            **some(rng, 0.3, defer_loading=True),
            **some(rng, 0.03, type="web_search_20250305"),
        }
        for name in rng.sample(NAMES, rng.randrange(1, 4))
    ]


def messages_body(rng: random.Random) -> dict[str, Any]:
    """A random body, valid more often than not."""
    body: dict[str, Any] = {"model": rng.choice(MODELS), "messages": _messages(rng)}
    system = [{"type": "text", "text": text(rng)} for _ in range(rng.randrange(3))]
    choices: list[Any] = [{"type": kind} for kind in ("auto", "any", "none")]
    choices += [{"type": "tool", "name": "f"}, {"type": "auto", "disable_parallel_tool_use": True}]
    maybe(rng, 0.3, body, "system", lambda: rng.choice([text(rng), system]))
    thinking = {"type": rng.choice(["enabled", "disabled", "adaptive"]), "budget_tokens": 1024}
    maybe(rng, 0.3, body, "thinking", lambda: thinking)
    maybe(rng, 0.3, body, "output_config", lambda: some(rng, 0.8, effort=rng.choice(EFFORTS)))
    maybe(rng, 0.5, body, "tools", lambda: _tools(rng))
    maybe(rng, 0.4, body, "tool_choice", lambda: rng.choice(choices))
    sampling(rng, body, "max_tokens")
    maybe(rng, 0.2, body, "top_k", lambda: 5)
    maybe(rng, 0.2, body, "stop_sequences", lambda: rng.choice([["a", "b"], [], None, ["x"] * 16]))
    maybe(rng, 0.1, body, "metadata", lambda: {"user_id": "u"})
    return body
