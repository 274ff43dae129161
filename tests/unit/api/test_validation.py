"""Bodies are checked strictly, and each refusal names the field's path, its value and the rule."""

import json

import pytest

from deepinfer_api.errors import ApiError
from deepinfer_api.schemas.chat import WITHOUT_EFFECT, ChatBody, content_text
from deepinfer_api.schemas.completions import CompletionBody
from deepinfer_api.schemas.validation import field_path, ignored_fields, parse_body, show

USER = {"role": "user", "content": "hi"}


def chat(**fields):
    body = parse_body(ChatBody, json.dumps({"messages": [USER]} | fields).encode())
    body.check()
    body.template_messages()
    body.stop_strings()
    return body


def completion(**fields):
    body = parse_body(CompletionBody, json.dumps({"prompt": "hi"} | fields).encode())
    body.check()
    body.prompts()
    body.stop_strings()
    return body


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages[1].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [USER, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[1].content[0]",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "messages[0].tool_calls"),
        ({"messages": [USER | {"prefix": True}]}, "messages[0].prefix"),
        ({"messages": [{"role": "assistant", "content": "a", "prefix": True}, USER]}, "messages[0].prefix"),
        ({"continue_final_message": True}, "messages[0].role"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": 1.5}, "n"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"seed": "1"}, "seed"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"stop": [1]}, "stop[0]"),
        ({"stop": 3}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": 1}, "logprobs"),
        ({"logit_bias": {"a": "b"}}, "logit_bias.a"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"stop_token_ids": [1.5]}, "stop_token_ids[0]"),
        ({"bad_words": "x"}, "bad_words"),
        ({"chat_template_kwargs": 3}, "chat_template_kwargs"),
    ],
)
def test_chat_refusals_name_the_field(fields, param):
    with pytest.raises(ApiError) as caught:
        chat(**fields)
    error = caught.value
    assert error.status == 400
    assert error.param == param
    assert param.partition("[")[0].partition(".")[0] in error.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": [1, "a"]}, "prompt[1]"),
        ({"prompt": [1, True]}, "prompt[1]"),
        ({"prompt": [[1, 2.5]]}, "prompt[0][1]"),
        ({"prompt": ["x"] * 1025}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"echo": 1}, "echo"),
    ],
)
def test_completion_refusals_name_the_field(fields, param):
    with pytest.raises(ApiError) as caught:
        completion(**fields)
    assert caught.value.status == 400
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"prompt": "a"} x', "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[]", "JSON object"),
        (b'"text"', "JSON object"),
        (b"null", "JSON object"),
        (b"[" * 5000, "not valid JSON"),
        (b'{"a":' * 5000, "not valid JSON"),
    ],
)
def test_bodies_that_are_no_object(data, message):
    with pytest.raises(ApiError, match=message) as caught:
        parse_body(CompletionBody, data)
    assert caught.value.code == "invalid_json"


def test_nulls_are_absent():
    names = set(ChatBody.model_fields) - {"messages"}
    body = chat(**dict.fromkeys(names))
    assert ignored_fields(body, WITHOUT_EFFECT) == []
    assert body.num_choices == 1
    assert body.max_output_tokens is None


def test_the_newer_name_of_max_tokens_wins():
    assert chat(max_tokens=5, max_completion_tokens=7).max_output_tokens == 7
    assert chat(max_tokens=5).max_output_tokens == 5
    assert completion(max_tokens=5, max_completion_tokens=7).max_output_tokens == 7
    assert completion().max_output_tokens == 16


def test_harmless_forms_are_accepted():
    body = chat(tools=[], tool_choice="none", functions=[], response_format={"type": "text"}, modalities=["text"])
    assert ignored_fields(body, WITHOUT_EFFECT) == []
    assert not completion(best_of=1, suffix="", stop=[]).stop
    assert completion(best_of=2, n=2).n == 2
    assert completion(max_tokens=0, echo=True).max_output_tokens == 0


def test_unknown_and_idle_fields_are_named():
    body = chat(frobnicate=1, user="me", reasoning_effort="low", temprature=0.5, nothing=None)
    assert ignored_fields(body, WITHOUT_EFFECT) == ["frobnicate", "temprature", "user", "reasoning_effort"]


def test_content_parts_are_joined_and_developer_is_system():
    body = chat(
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c", "reasoning_content": "r", "custom": 1, "nothing": None},
        ]
    )
    assert body.template_messages() == [
        {"role": "system", "content": "a\n\nb"},
        {"role": "assistant", "content": "c", "reasoning_content": "r", "custom": 1},
    ]


def test_content_text_of_an_empty_list_is_empty():
    assert content_text([], "messages[0].content") == ""


def test_prefix_continues_the_final_message():
    assert chat(messages=[USER, {"role": "assistant", "content": "a", "prefix": True}]).continues_final_message
    assert not chat().continues_final_message


def test_paths_and_values():
    assert field_path(("messages", 2, "content", 0, "text")) == "messages[2].content[0].text"
    assert field_path(()) == ""
    assert len(show("x" * 1000)) == 60
