"""Results do not depend on cuts, protocols agree, and reading takes linear time."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.recipe_rs.stream_driver import APIS, MARKER, block, call, drive, pieces_of

ATOMS = [
    "a", " b", "\n", "\n\n", "<", "</", "</think>", "<think>", "｜", f"<{MARKER}", f"</{MARKER}", MARKER, " calls>",
    "tool_calls>", ' invoke name="', 'invoke name="f">', ' parameter name="', 'parameter name="k" string="true">',
    ' string="', 'false">', 'true">', '">', '"/>', " parameter>", " invoke>", "parameter>", '{"a": 1}', "nope", '"',
    "\\", "é", "STOP", "ST", "```", "```json\n", "{", "[1]",
    block(call("f", ("x", "true", "v<"), ("y", "false", "[1, 2]"))),
    f'<{MARKER} calls>\n<{MARKER} invoke name="g">\n',
]  # fmt: skip
OUTPUTS = st.lists(st.sampled_from(ATOMS), max_size=14).map("".join)
OPTIONS = st.fixed_dictionaries(
    {
        "stage": st.sampled_from([None, "ReasoningStart", "ReasoningContinuation", "ContentContinuation"]),
        "finish": st.sampled_from(["Stop", "Length", "ContentFilter", None]),
        "stop_sequences": st.sampled_from([[], ["STOP"], ["<", "\n"], ["ST", "TOP"]]),
        "parse_tool_calls": st.sampled_from([True, True, True, False]),
        "starts_in_tool_calls": st.sampled_from([False, False, False, True]),
        "compat": st.booleans(),
        "tool_parameters": st.sampled_from([{}, {"f": ["a", "x"]}]),
    }
)
FORMATS = {
    "hermes": ['<tool_call>\n{"name": "f", "arguments": {"a": [1, "}"]}}\n</tool_call>', "<tool_call>", "</tool_call>"],
    "llama3": ['{"name": "f", "parameters": {"a": 1}}', "<|python_tag|>", '{"a": 2}', ";"],
    "mistral": ['[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]', '[TOOL_CALLS]f[ARGS]{"a": 1}', "[TOOL_CALLS]"],
    "think": ["<think>", "</think>"],
    "none": ["</think>"],
}


def assert_splits_agree(text: str, cuts: list[int], options: dict[str, Any]) -> None:
    whole = drive([text] if text else [], **options)
    for pieces in (list(text), pieces_of(text, cuts)):
        assert drive(pieces, **options).answer == whole.answer, pieces
    seen = whole.diagnostics
    if whole.answer.finish != "stop" or not options.get("stop_sequences"):
        assert seen.num_input_bytes == len(text.encode())
    assert seen.num_visible_bytes + seen.num_markup_bytes + seen.num_dropped_bytes == seen.num_input_bytes


def assert_protocols_agree(text: str, options: dict[str, Any]) -> None:
    chat, responses, messages = (drive([text] if text else [], api=api, **options).answer for api in APIS)
    assert (chat.reasoning, chat.content) == (responses.reasoning, responses.content)
    assert (chat.reasoning, chat.content) == (messages.reasoning, messages.content)
    assert chat.calls == responses.calls
    assert [name for name, _ in chat.calls] == [name for name, _ in messages.calls]
    for number, (_, arguments) in enumerate(chat.calls):
        is_cut = number == len(chat.calls) - 1 and options["finish"] != "Stop"
        if not is_cut:
            assert json.loads(messages.calls[number][1]) == json.loads(arguments)
            assert isinstance(json.loads(arguments), dict)


@given(OUTPUTS, st.lists(st.integers(0, 400), max_size=5), OPTIONS)
def test_any_output_is_read_alike_however_it_is_cut(text: str, cuts: list[int], options: dict[str, Any]) -> None:
    assert_splits_agree(text, cuts, options)
    assert_protocols_agree(text, options)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_other_formats_are_read_alike_however_they_are_cut(name: str, data: st.DataObject) -> None:
    atoms = [*FORMATS[name], "a", "\n", "{", "}", '"', "<", "[", "é", " "]
    text = data.draw(st.lists(st.sampled_from(atoms), max_size=8).map("".join))
    finish = data.draw(st.sampled_from(["Stop", "Length"]))
    options = {"output_format": name, "finish": finish}
    assert_splits_agree(text, data.draw(st.lists(st.integers(0, 200), max_size=4)), options)
    assert_protocols_agree(text, options)


@pytest.mark.parametrize(
    ("name", "text", "calls", "content"),
    [
        ("hermes", 'Hi\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', [("f", '{"a": 1}')], "Hi"),
        ("hermes", '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', [("f", '{"a": 1}')], ""),
        ("hermes", "<tool_call>no</tool_call>", [], "no</tool_call>"),
        ("llama3", '{"name": "f", "parameters": {"a": "b"}}', [("f", '{"a": "b"}')], ""),
        ("llama3", '{"answer": 1}', [], '{"answer": 1}'),
        ("llama3", '<|python_tag|>{"name": "f", "parameters": {}}', [("f", "{}")], ""),
        ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "g"}]', [("f", "{}"), ("g", "{}")], ""),
        ("mistral", 'x[TOOL_CALLS]f[ARGS]{"a": 1}', [("f", '{"a": 1}')], "x"),
        ("mistral", "[TOOL_CALLS]é a\n", [], "é a\n"),
    ],
)
def test_other_formats_give_calls(name: str, text: str, calls: list[tuple[str, str]], content: str) -> None:
    answer = drive(list(text), output_format=name).answer
    assert (list(answer.calls), answer.content) == (calls, content)


def adversarial(kind: str, size: int) -> list[str]:
    repeat = {
        "openers": f"<{MARKER}",
        "tags": f"<{MARKER} calls>\n",
        "parameters": f'<{MARKER} parameter name="k" string="true">v</{MARKER} parameter>\n',
        "JSON parameters": f'<{MARKER} parameter name="k" string="false">1</{MARKER} parameter>\n',
        "invokes": f'<{MARKER} invoke name="f">\n</{MARKER} invoke>\n',
        "think ends": "</think>",
        "less than": "<",
        "newlines": "\n",
        "quotes in a name": '"',
        "single characters": "\n<",
    }[kind]
    prefix = {
        "parameters": f'<{MARKER} calls>\n<{MARKER} invoke name="f">\n',
        "JSON parameters": f'<{MARKER} calls>\n<{MARKER} invoke name="f">\n',
        "invokes": f"<{MARKER} calls>\n",
        "quotes in a name": f'<{MARKER} invoke name="f">\n<{MARKER} parameter name="',
    }.get(kind, "a")
    text = prefix + repeat * (size // len(repeat.encode()))
    return list(text) if kind == "single characters" else [text]


def seconds(pieces: list[str]) -> float:
    import recipe_rs

    source = recipe_rs.ChatCompletionChunkGenerator("id", "model")
    processor = recipe_rs.StreamProcessor(source, recipe_rs.ParsingOptions(stop_sequences=["\n<|", "zz"]))
    chunks = [recipe_rs.InferenceChunk.text(piece, 1) for piece in pieces]
    start = time.process_time()
    for chunk in chunks:
        processor.push(chunk)
    processor.finish()
    return time.process_time() - start


@pytest.mark.parametrize(
    "kind",
    [
        "openers", "tags", "parameters", "JSON parameters", "invokes", "think ends", "less than", "newlines",
        "quotes in a name", "single characters",
    ],
)  # fmt: skip
def test_f4_time_is_linear_in_the_input(kind: str) -> None:
    """Eight times the input: ratio 8 is linear, 64 quadratic; the best of several attempts counts."""
    ratios = []
    for _ in range(5):
        short = min(seconds(adversarial(kind, 125_000)) for _ in range(3))
        ratios.append(min(seconds(adversarial(kind, 1_000_000)) for _ in range(2)) / short)
        if min(ratios) < 10:
            break
    assert min(ratios) < 10, ratios


def test_random_bytes_of_markup_never_fail() -> None:
    rng = random.Random(5)
    for _ in range(300):
        text = "".join(rng.choice(ATOMS) for _ in range(rng.randrange(40)))
        finish = rng.choice(["Stop", "Length"])
        assert drive([text], finish=finish).answer == drive(list(text), finish=finish).answer, text
