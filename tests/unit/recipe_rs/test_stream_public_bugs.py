"""Faults that were reported in public against inference servers, each with the right result.

The numbers are those of the case list; every output is fed in one piece, by characters, and at each cut into two.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.recipe_rs.stream_driver import (
    APIS,
    MARKER,
    Answer,
    argument_deltas,
    block,
    call,
    deltas,
    drive,
    splits,
)

TOOLS = {"shell": ["command"], "get_weather": ["city", "days"], "flag": ["enabled"]}
OSLO = call("get_weather", ("city", "true", "Oslo"))
B4 = "Let me look." + block(OSLO)
B8_OBJECT = block(call("get_weather", ("arguments", "false", '{"city":"Rome"}')))
B12 = f'<{MARKER} invoke name="flag">\n<parameter name="enabled">true</{MARKER} parameter>\n</{MARKER} invoke>'
B12_NO_ATTRIBUTE = (
    f'<{MARKER} invoke name="flag">\n<{MARKER} parameter name="enabled">true</{MARKER} parameter>\n</{MARKER} invoke>'
)
B27_VALUE = "a < b </ c <｜ d </x> </｜DS"
THREE_CALLS = block(
    call("get_weather", ("city", "true", "Lima")),
    call("flag"),
    call("get_weather", ("city", "true", "Pune"), ("days", "false", "-7")),
)


def calls(*found: tuple[str, str], **fields: Any) -> Answer:
    return replace(Answer(calls=found, finish="tool_calls"), **fields)


def typed(attribute: str, text: str) -> str:
    return block(call("flag", ("enabled", attribute, text)))


CASES: dict[str, tuple[str, dict[str, Any], Answer]] = {
    "B1 closing tag": (
        "</think>" + block(OSLO),
        {"stage": "ReasoningStart"},
        calls(("get_weather", '{"city": "Oslo"}')),
    ),
    "B4 opener in pieces": (B4, {}, calls(("get_weather", '{"city": "Oslo"}'), content="Let me look.")),
    "B6 several calls": (
        THREE_CALLS,
        {},
        calls(("get_weather", '{"city": "Lima"}'), ("flag", "{}"), ("get_weather", '{"city": "Pune", "days": -7}')),
    ),
    "B8 wrapped object": (B8_OBJECT, {"tool_parameters": TOOLS}, calls(("get_weather", '{"city":"Rome"}'))),
    "B8 wrapped object as a string": (
        block(call("get_weather", ("arguments", "true", '{"city":"Rome"}'))),
        {"tool_parameters": TOOLS},
        calls(("get_weather", '{"city":"Rome"}')),
    ),
    "B8 wrapped and escaped": (
        block(call("get_weather", ("arguments", "true", r"{\"city\":\"Rome\"}"))),
        {"tool_parameters": TOOLS},
        calls(("get_weather", '{"city":"Rome"}')),
    ),
    "B8 wrapper with a bare string": (
        block(call("shell", ("input", "true", "ls"))),
        {"tool_parameters": TOOLS},
        calls(("shell", '{"input": "ls"}')),
    ),
    "B8 declared parameter": (
        block(call("run", ("arguments", "false", '{"city":"Rome"}'))),
        {"tool_parameters": {"run": ["arguments", "city"]}},
        calls(("run", '{"arguments": {"city":"Rome"}}')),
    ),
    "B8 body is JSON": (
        block(f'<{MARKER} invoke name="get_weather">\n{{"city":"Rome"}}\n</{MARKER} invoke>'),
        {"tool_parameters": TOOLS},
        calls(("get_weather", '{"city":"Rome"}')),
    ),
    "B9 true": (typed("false", "true"), {}, calls(("flag", '{"enabled": true}'))),
    "B9 number": (typed("false", "1e3"), {}, calls(("flag", '{"enabled": 1e3}'))),
    "B9 list": (typed("false", "[1,2]"), {}, calls(("flag", '{"enabled": [1,2]}'))),
    "B9 object": (typed("false", '{"a":1}'), {}, calls(("flag", '{"enabled": {"a":1}}'))),
    "B9 null": (typed("false", "null"), {}, calls(("flag", '{"enabled": null}'))),
    "B9 string true": (typed("true", "true"), {}, calls(("flag", '{"enabled": "true"}'))),
    "B9 string 007": (typed("true", "007"), {}, calls(("flag", '{"enabled": "007"}'))),
    "B9 broken object": (typed("false", "{oops"), {}, calls(("flag", '{"enabled": "{oops"}'))),
    "B9 Python's True": (typed("false", "True"), {}, calls(("flag", '{"enabled": "True"}'))),
    "B9 empty": (typed("false", ""), {}, calls(("flag", '{"enabled": ""}'))),
    "B10 less than": ("2 <", {}, Answer(content="2 <")),
    "B10 bar": ("a <｜", {}, Answer(content="a <｜")),
    "B10 half a marker": ("x <｜DS", {}, Answer(content="x <｜DS")),
    "B10 half a think end": ("</thin", {}, Answer(content="</thin")),
    "B10 cut by the limit": ("2 <", {"finish": "Length"}, Answer(content="2 <", finish="length")),
    "B12 opening tag without marker": (block(B12), {}, calls(("flag", '{"enabled": true}'))),
    "B12 attribute missing": (block(B12_NO_ATTRIBUTE), {}, calls(("flag", '{"enabled": true}'))),
    "B14 limit in the second call": (
        block(OSLO, OSLO)[: block(OSLO, OSLO).rindex("lo</")],
        {"finish": "Length"},
        Answer(calls=(("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Os')), finish="length"),
    ),
    "B15 thinking never ends": ("Good morning!", {"stage": "ReasoningStart"}, Answer(reasoning="Good morning!")),
    "B15 limit while thinking": (
        "Good",
        {"stage": "ReasoningStart", "finish": "Length"},
        Answer(reasoning="Good", finish="length"),
    ),
    "B17 no thinking": ("Paris", {}, Answer(content="Paris")),
    "B20 found": ("ABC DEFGHIJ K", {"stop_sequences": ["DEFGHIJ"]}, Answer(content="ABC ")),
    "B20 not found": ("ABC DEF GHI J", {"stop_sequences": ["DEFGHIJ"]}, Answer(content="ABC DEF GHI J")),
    "B20 inside a word": ("brown fox", {"stop_sequences": ["own fox"]}, Answer(content="br")),
    "B20 line": ("a\nUser: b", {"stop_sequences": ["\nUser:"]}, Answer(content="a")),
    "B20 tag": ("x</code>y", {"stop_sequences": ["</code>"]}, Answer(content="x")),
    "B20 piece of the think end": (
        "r</think>think",
        {"stage": "ReasoningStart", "stop_sequences": ["think"]},
        Answer(reasoning="r"),
    ),
    "B20 not in reasoning": (
        "STOP</think>ok",
        {"stage": "ReasoningStart", "stop_sequences": ["STOP"]},
        Answer(reasoning="STOP", content="ok"),
    ),
    "B20 not in arguments": (
        block(call("shell", ("command", "true", "STOP"))),
        {"stop_sequences": ["STOP"]},
        calls(("shell", '{"command": "STOP"}')),
    ),
    "B20 overlapping": ("abcdef", {"stop_sequences": ["bcde", "cd"]}, Answer(content="ab")),
    "B20 last bytes": ("abcSTOP", {"stop_sequences": ["STOP"]}, Answer(content="abc")),
    "B26 call inside thinking": (
        "plan A" + block(OSLO),
        {"stage": "ReasoningStart"},
        calls(("get_weather", '{"city": "Oslo"}'), reasoning="plan A"),
    ),
    "B26 quoted opener": (
        f"use `<{MARKER} calls>` to call. done</think>ok",
        {"stage": "ReasoningStart"},
        Answer(reasoning="use `` to call. done", content="ok"),
    ),
    "B27 value like markup": (
        block(call("shell", ("command", "true", B27_VALUE))),
        {},
        calls(("shell", json.dumps({"command": B27_VALUE}, ensure_ascii=False))),
    ),
    "X5 text after the block": (block(OSLO) + "\nbye", {}, calls(("get_weather", '{"city": "Oslo"}'))),
    "X9 toolcalls": (
        f"<{MARKER}toolcalls>\n{OSLO}\n</{MARKER}toolcalls>",
        {},
        calls(("get_weather", '{"city": "Oslo"}')),
    ),
    "X9 tool": (f"<{MARKER}tool>\n{OSLO}\n</{MARKER}tool>", {}, calls(("get_weather", '{"city": "Oslo"}'))),
    "X9 closes itself": (block(f'<{MARKER}invoke name="flag"/>'), {}, calls(("flag", "{}"))),
}


@pytest.mark.parametrize("name", CASES)
def test_every_split_gives_the_right_answer(name: str) -> None:
    text, options, expected = CASES[name]
    for pieces in splits(text):
        assert drive(pieces, **options).answer == expected, pieces


@pytest.mark.parametrize("name", CASES)
def test_the_three_protocols_agree(name: str) -> None:
    text, options, expected = CASES[name]
    for api in APIS[1:]:
        answer = drive([text], api=api, **options).answer
        assert (answer.reasoning, answer.content) == (expected.reasoning, expected.content)
        assert len(answer.calls) == len(expected.calls)
        for found, wanted in zip(answer.calls, expected.calls, strict=True):
            is_cut = expected.finish == "length" and api == "messages" and wanted == expected.calls[-1]
            assert found[0] == wanted[0]
            assert (
                json.loads(found[1]) == ({} if is_cut else json.loads(wanted[1]))
                if not (expected.finish == "length" and api == "responses")
                else found[1] == wanted[1]
            )


def test_b1_no_prefix_of_the_arguments_shows_the_closing_tag() -> None:
    for pieces in splits("</think>" + block(OSLO)):
        assert not any("<" in text for _, _, text in argument_deltas(drive(pieces, stage="ReasoningStart")))


def test_b3_arguments_flow_while_they_are_written() -> None:
    value = "0123456789" * 2_000
    text = block(call("shell", ("command", "true", value)))
    start = text.index(value)
    stream = drive([text[:start], *value, text[start + len(value) :]])
    sent = [push for push, _, fragment in argument_deltas(stream) if fragment.isdigit()]
    assert len(sent) == len(value)
    assert sent[0] == 1
    assert stream.answer.calls == (("shell", json.dumps({"command": value})),)


def test_b4_two_streams_share_no_state() -> None:
    assert [drive(list(B4)).answer for _ in range(2)] == [CASES["B4 opener in pieces"][2]] * 2


def test_b4_every_cut_of_the_opener_into_three() -> None:
    opener = B4.index("<")
    for first in range(opener, opener + 12):
        for second in range(first + 1, opener + 14):
            pieces = [B4[:first], B4[first:second], B4[second:]]
            assert drive(pieces).answer == CASES["B4 opener in pieces"][2]


def test_b12_a_repeated_parameter_keeps_the_last_value() -> None:
    text = block(call("flag", ("enabled", "false", "true"), ("enabled", "false", "false")))
    (found,) = drive([text]).answer.calls
    assert json.loads(found[1]) == {"enabled": False}


def test_b14_indices_and_ids_of_parallel_calls_differ() -> None:
    stream = drive([block(OSLO, OSLO), ""])
    assert sorted({index for _, index, _ in argument_deltas(stream)}) == [0, 1]
    assert len(set(stream.call_ids)) == 2
    assert stream.answer.finish == "tool_calls"


@pytest.mark.parametrize("api", APIS)
def test_b20_the_stop_reason_names_the_sequence(api: str) -> None:
    stream = drive(["a ST", "OP b"], api=api, stop_sequences=["STOP"])
    if api == "messages":
        assert (stream.answer.finish, stream.accumulated["stop_sequence"]) == ("stop_sequence", "STOP")
    else:
        assert stream.answer.finish == {"chat": "stop", "responses": "completed"}[api]


def test_b26_no_byte_of_markup_is_visible() -> None:
    for pieces in splits("plan A" + block(OSLO)):
        stream = drive(pieces, stage="ReasoningStart")
        assert not any(MARKER in text or "<" in text for text in deltas(stream, "reasoning_content"))
        assert deltas(stream, "content") == []


@pytest.mark.parametrize("name", CASES)
def test_x5_every_byte_is_accounted_for(name: str) -> None:
    text, options, _ = CASES[name]
    seen = drive([text], **options).diagnostics
    assert seen.num_input_bytes == len(text.encode())
    assert seen.num_visible_bytes + seen.num_markup_bytes + seen.num_dropped_bytes == seen.num_input_bytes


def test_x3_responses_events_are_numbered_and_paired() -> None:
    text = "think</think>Hi" + THREE_CALLS
    stream = drive(list(text), api="responses", stage="ReasoningStart")
    events = [event for push in stream.pushes for event in push]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert added == [item["id"] for item in done]
    assert done == stream.accumulated["output"]
    indices = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    assert indices == list(range(len(done)))
    assert {event.get("content_index", 0) for event in events} == {0}
    assert {"id", "object", "model", "output"} <= events[-1]["response"].keys()
    reasoning = next(item for item in done if item["type"] == "reasoning")
    assert reasoning["id"]
    assert reasoning["summary"] == []


def test_x4_messages_blocks_open_once_and_thinking_is_signed() -> None:
    text = "think</think>Hi" + THREE_CALLS
    stream = drive(list(text), api="messages", stage="ReasoningStart")
    events = [event for push in stream.pushes for event in push]
    open_block = None
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert open_block is None
                open_block = event["index"]
            case "content_block_delta":
                assert event["index"] == open_block
            case "content_block_stop":
                assert event["index"] == open_block
                open_block = None
    starts = [event for event in events if event["type"] == "content_block_start"]
    assert [event["index"] for event in starts] == list(range(5))
    assert starts[0]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    signatures = [event for event in events if event.get("delta", {}).get("type") == "signature_delta"]
    assert len(signatures) == 1
