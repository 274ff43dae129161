"""Texts for the codec benchmark, made from what every installation has; the same bytes on every run of one Python.

`code` and `prose` are real (the standard library's sources and its help texts); `json` is made of tool schemas; `zh`
and `ja` are drawn from the vocabulary's own words, frequent ones more often, so they have the lengths and the variety
of text but no sense; `chat` mixes all of them.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from pydoc_data.topics import topics

CORPORA = ("code", "prose", "json", "chat", "zh", "ja")
KANA = range(0x3040, 0x3100)
HAN = range(0x4E00, 0x9FA6)


def make_corpus(name: str, num_bytes: int, words: Iterable[str]) -> str:
    """Returns about `num_bytes` of UTF-8 text of one kind; `words` are the vocabulary's words in order of their ids."""
    makers: dict[str, Callable[[], str]] = {
        "code": lambda: _code(num_bytes),
        "prose": lambda: _prose(),
        "json": lambda: _json(num_bytes),
        "zh": lambda: _cjk(num_bytes, words, kana=False),
        "ja": lambda: _cjk(num_bytes, words, kana=True),
    }
    if name in makers:
        return _cut(makers[name](), num_bytes)
    parts = [make_corpus(kind, num_bytes // 5, words) for kind in ("prose", "code", "json", "zh", "ja")]
    turns = [part[start : start + 1500] for part in parts for start in range(0, len(part), 1500)]
    random.Random(1).shuffle(turns)
    return "\n\n".join(turns)


def _cut(text: str, num_bytes: int) -> str:
    data = text.encode()
    while len(data) < num_bytes:
        data += b"\n" + data
    return data[:num_bytes].decode(errors="ignore")


def _code(num_bytes: int) -> str:
    pieces, size = [], 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        pieces.append(path.read_text(encoding="utf-8", errors="ignore"))
        size += len(pieces[-1])
        if size > num_bytes:
            break
    return "\n".join(pieces)


def _prose() -> str:
    return "\n\n".join(topics[name] for name in sorted(topics))


def _json(num_bytes: int) -> str:
    rng = random.Random(2)
    names = sorted({word for word in _prose().split() if word.isidentifier()})
    tools, size = [], 0
    while size < num_bytes:
        fields = {
            rng.choice(names).lower(): {
                "type": rng.choice(["string", "integer", "number", "boolean", "array"]),
                "description": " ".join(rng.choices(names, k=rng.randint(4, 12))),
                "default": rng.choice([None, rng.randint(0, 10_000), rng.random()]),
            }
            for _ in range(rng.randint(1, 6))
        }
        function = {
            "name": "_".join(rng.choices(names, k=2)).lower(),
            "parameters": {"type": "object", "properties": fields},
        }
        tools.append(json.dumps({"type": "function", "function": function}))
        size += len(tools[-1])
    return ",\n".join(tools)


def _cjk(num_bytes: int, words: Iterable[str], *, kana: bool) -> str:
    chosen = []
    for word in words:
        has_kana = any(ord(char) in KANA for char in word)
        is_cjk = all(ord(char) in KANA or ord(char) in HAN for char in word)
        if word and is_cjk and (has_kana or not kana or len(chosen) % 3 == 0) and (kana or not has_kana):
            chosen.append(word)
    rng = random.Random(3)
    weights = [1 / (rank + 5) ** 0.8 for rank in range(len(chosen))]
    text = []
    for word in rng.choices(chosen, weights, k=num_bytes // 5):
        text.append(word)
        if (draw := rng.random()) < 0.14:
            text.append("，" if draw < 0.08 and not kana else "、" if draw < 0.08 else "。" if draw < 0.13 else "\n")  # noqa: RUF001
    return "".join(text)
