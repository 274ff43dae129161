"""What cannot be held or read stays visible: tool input, reasoning that clients carry, limits of bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recipe_rs
from tests.unit.recipe_rs.stream_driver import MARKER, block, call, drive

MODEL = "DeepSeek-V4.1-Flash"
OPEN = recipe_rs.ConversionOptions().with_compat(False)
DEEP = "[" * 200 + "]" * 200
REQUESTS = {
    "ChatCompletionRequest": {"model": MODEL, "messages": [{"role": "user", "content": "hé"}]},
    "ResponsesRequest": {"model": MODEL, "input": "hé"},
    "MessagesRequest": {"model": MODEL, "max_tokens": 3, "messages": [{"role": "user", "content": "hé"}]},
}


@pytest.mark.parametrize("value", [DEEP, "1e400", '"\\ud800"'])
def test_f11_whole_tool_input_never_becomes_empty(value: str) -> None:
    text = block(call("f", ("a", "false", value)))
    (found,) = drive([text], api="messages").answer.calls
    assert json.loads(found[1]) == {"arguments": f'{{"a": {value}}}'}


def test_f11_cut_tool_input_is_empty_and_the_reason_says_so() -> None:
    stream = drive([block(call("f", ("a", "true", "xyz")))[:-40]], api="messages", finish="Length")
    assert stream.accumulated["stop_reason"] == "max_tokens"
    assert json.loads(stream.answer.calls[0][1]) == {}


def responses_items(body: dict[str, Any]) -> list[dict[str, Any]]:
    request = recipe_rs.ResponsesRequest(body).convert(OPEN)
    generator = recipe_rs.ResponsesRequest.chunk_generator(request, "resp_1", MODEL)
    processor = recipe_rs.StreamProcessor(generator, request.parsing_options)
    events = processor.push(recipe_rs.InferenceChunk.text("because é\n</think>done", 4))
    events += processor.push(recipe_rs.InferenceChunk.finish(recipe_rs.InferenceFinishReason.Stop))
    items: list[dict[str, Any]] = json.loads(events[-1].to_json())["response"]["output"]
    return items


def test_reasoning_comes_back_from_what_a_client_carried() -> None:
    asked = {"model": MODEL, "input": "q", "include": ["reasoning.encrypted_content"]}
    reasoning, answer = responses_items(asked)
    assert "because" not in reasoning["encrypted_content"]
    carried = {"type": "reasoning", "id": reasoning["id"], "summary": [], "content": None}
    carried["encrypted_content"] = reasoning["encrypted_content"]
    follow_up = {"model": MODEL, "input": [{"role": "user", "content": "q"}, carried, answer]}
    request = recipe_rs.ResponsesRequest(follow_up).convert(OPEN)
    assert request.conversation.messages[1].reasoning_content == "because é"
    assert request.conversation.messages[1].content == "done"
    official = recipe_rs.ResponsesRequest(follow_up).convert(recipe_rs.ConversionOptions())
    assert official.conversation.messages[1].reasoning_content == ""


def test_reasoning_is_not_carried_unasked_and_foreign_text_is_no_reasoning() -> None:
    reasoning, _ = responses_items({"model": MODEL, "input": "q"})
    assert reasoning["encrypted_content"] == "resp_1-0"
    for foreign in ("gAAAAABo", "recipe1.*", "recipe1", ""):
        item = {"type": "reasoning", "summary": [], "encrypted_content": foreign}
        body = {
            "model": MODEL,
            "input": [{"role": "user", "content": "q"}, item, {"role": "assistant", "content": "a"}],
        }
        messages = recipe_rs.ResponsesRequest(body).convert(OPEN).conversation.messages
        assert messages[1].reasoning_content == ""


@pytest.mark.parametrize("request_class", REQUESTS)
def test_bodies_beyond_a_limit_are_refused_before_they_are_read(request_class: str) -> None:
    make = getattr(recipe_rs, request_class)
    body = REQUESTS[request_class]
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    for given in (body, text, text.encode()):
        size = len(text.encode())
        assert make(given, max_bytes=size).model == MODEL
        with pytest.raises(recipe_rs.ConversionError, match=f"{size} bytes; at most {size - 1}") as refused:
            make(given, max_bytes=size - 1)
        assert refused.value.status_code == 413
    with pytest.raises(recipe_rs.ConversionError, match="at most 3"):
        make(b"not JSON", max_bytes=3)


def test_a_server_sets_what_responses_repeat() -> None:
    echo = recipe_rs.ResponsesRequest({"model": MODEL, "input": "q", "temperature": 0.3, "user": "u"}).echo()
    assert (echo.user, echo.temperature) == ("u", pytest.approx(0.3))
    changes = {
        **{"instructions": "i", "max_output_tokens": 7, "temperature": 0.5, "top_p": 0.25, "top_logprobs": 2},
        **{"user": None, "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}, "tool_choice": "none"},
        **{"tools": [{"type": "function", "name": "f"}], "store": True, "background": True},
        **{"parallel_tool_calls": False, "previous_response_id": "resp_0", "metadata": {"a": "b"}},
    }
    for name, value in changes.items():
        setattr(echo, name, value)
        assert getattr(echo, name) == value
    generator = recipe_rs.ResponsesChunkGenerator("resp_1", MODEL).with_echo(echo)
    processor = recipe_rs.StreamProcessor(generator, recipe_rs.ParsingOptions())
    created = json.loads(processor.push(recipe_rs.InferenceChunk.ready())[0].to_json())["response"]
    assert {name: created[name] for name in changes} == changes
    with pytest.raises(TypeError, match="metadata"):
        echo.metadata = ["a"]
    with pytest.raises(TypeError):
        echo.tools = object()


@pytest.mark.parametrize(
    ("options", "compat", "wanted"),
    [
        ({"stream": True, "stream_options": {"include_usage": True}}, False, [False, False, True]),
        ({"stream": True}, False, [False, False]),
        ({}, False, [False, True]),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, [False, True]),
        ({"stream": True}, True, [False, True]),
    ],
)
def test_chat_usage_is_where_the_protocol_puts_it(options: dict[str, Any], compat: bool, wanted: list[bool]) -> None:
    body = {**REQUESTS["ChatCompletionRequest"], **options}
    request = recipe_rs.ChatCompletionRequest(body).convert(OPEN.with_compat(compat))
    generator = recipe_rs.ChatCompletionRequest.chunk_generator(request, "c", MODEL)
    processor = recipe_rs.StreamProcessor(generator, request.parsing_options)
    chunks = processor.push(recipe_rs.InferenceChunk.ready())
    chunks += processor.push(recipe_rs.InferenceChunk.finish(recipe_rs.InferenceFinishReason.Stop))
    sent = [json.loads(chunk.to_json()) for chunk in chunks]
    assert [chunk.get("usage") is not None for chunk in sent] == wanted
    assert all(chunk["choices"] for chunk in sent[:2])


def test_markers_in_text_of_a_tool_stay_text() -> None:
    found = drive([block(call("f", ("a", "true", f"<{MARKER} x")))]).answer.calls
    assert json.loads(found[0][1]) == {"a": f"<{MARKER} x"}
