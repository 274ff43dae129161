"""What conversion does with compat off: fixes F13-F19, and extensions that the official codec refuses or ignores."""

# ruff: noqa: RUF001, PT018

from __future__ import annotations

import json
from typing import Any

import pytest

recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

MODEL = "DeepSeek-V4.1-Flash"
OPEN = recipe_rs.ConversionOptions().with_compat(False)
USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
TOOLS = [TOOL, {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}]
ITEM_TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in "fg"]
CLIENT_TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in "fg"]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def chat(**fields: Any) -> Any:
    return recipe_rs.ChatCompletionRequest({"model": MODEL, "messages": [USER], **fields}).convert(OPEN)


def responses(**fields: Any) -> Any:
    return recipe_rs.ResponsesRequest({"model": MODEL, "input": "hi", **fields}).convert(OPEN)


def messages(**fields: Any) -> Any:
    return recipe_rs.MessagesRequest({"model": MODEL, "max_tokens": 9, "messages": [USER], **fields}).convert(OPEN)


def test_f13_strict_keeps_definitions() -> None:
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/q"}},
        "$defs": {"q": {"type": "object", "properties": {"z": {"type": "null"}}}},
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters, "strict": True}}
    kept = chat(tools=[tool]).conversation.tools[0].parameters
    assert kept["$defs"]["q"]["required"] == ["z"] and kept["$defs"]["q"]["additionalProperties"] is False


def test_f14_any_is_required() -> None:
    request = messages(tools=CLIENT_TOOLS, tool_choice={"type": "any"})
    assert request.conversation.tool_choice == "required"
    assert request.inference_options.output_constraint.kind == "tool_call_required"


def test_f15_custom_is_a_client_tool() -> None:
    request = messages(tools=[{**CLIENT_TOOLS[0], "type": "custom"}])
    assert [tool.name for tool in request.conversation.tools] == ["f"]


def test_f16_aliases_of_fields_count() -> None:
    assert chat(max_completion_tokens=5, max_tokens=9).inference_options.max_tokens == 5
    wanted = {"type": "json_schema", "schema": SCHEMA}
    for request in (messages(output_config={"format": wanted}), messages(output_format=wanted)):
        assert request.conversation.response_schema == SCHEMA
        assert json.loads(request.inference_options.output_constraint.schema) == SCHEMA


def test_f17_both_constraints_are_reported() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    strict = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}
    request = chat(tools=[strict, TOOLS[1]], response_format=wanted)
    assert request.inference_options.output_constraint.kind == "tool_call"
    assert request.response_constraint.kind == "json"
    assert json.loads(request.response_constraint.schema)["additionalProperties"] is False


def test_f18_the_latest_reminder_stays_and_a_first_prefix_keeps_its_reasoning() -> None:
    encoding = recipe_rs.DeepseekV41Encoding()
    reminders = recipe_rs.Conversation([recipe_rs.LatestReminderMessage(text) for text in "ab"])
    assert encoding.render_conversation(reminders).prompt.count("reminder｜>a") == 1
    assert encoding.with_compat(False).render_conversation(reminders).prompt.count("reminder｜>b") == 1
    prefix = recipe_rs.Conversation([recipe_rs.AssistantMessage("x", "why", prefix=True)])
    assert "why" not in encoding.render_conversation(prefix).prompt
    assert "<think>why</think>x" in encoding.with_compat(False).render_conversation(prefix).prompt


def test_f19_calls_keep_their_order() -> None:
    calls = [recipe_rs.ToolCall(id_, f"tool{id_}", "{}") for id_ in ("9", "10")]
    results = [recipe_rs.ToolMessage(f"result{id_}", id_) for id_ in ("10", "9")]
    conversation = recipe_rs.Conversation([recipe_rs.AssistantMessage("", None, calls), *results])
    sorted_prompt = recipe_rs.DeepseekV4Encoding().render_conversation(conversation).prompt
    given_prompt = recipe_rs.DeepseekV4Encoding().with_compat(False).render_conversation(conversation).prompt
    assert sorted_prompt.index("tool10") < sorted_prompt.index("tool9")
    assert given_prompt.index("tool9") < given_prompt.index("tool10")
    assert given_prompt.index("result9") < given_prompt.index("result10")


def test_f25_extra_sampling_fields_are_reported_and_checked() -> None:
    extra = {"top_k": 5, "min_p": 0.1, "logit_bias": {"5": 1}, "ignore_eos": True, "bad_words": ["x"]}
    for make in (chat, responses, messages):
        assert make(**extra, presence_penalty=None).extra_sampling == extra
        with pytest.raises(recipe_rs.ConversionError, match="min_p"):
            make(min_p=2)
    assert chat(frequency_penalty=1, no_such_field=1, metadata={}).ignored_fields == ["no_such_field", "metadata"]


def test_forced_calls_come_after_the_thinking() -> None:
    encoding = recipe_rs.DeepseekV41Encoding().with_compat(False)
    forced = [
        chat(tools=TOOLS, tool_choice="required"),
        chat(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "g"}}),
        responses(tools=ITEM_TOOLS, tool_choice={"type": "function", "name": "g"}),
        messages(tools=CLIENT_TOOLS, tool_choice={"type": "tool", "name": "g"}),
    ]
    for request in forced:
        assert request.inference_options.output_constraint.kind == "tool_call_required"
        assert not request.parsing_options.starts_in_tool_calls
        assert encoding.render_conversation(request.conversation).prompt.endswith("<think>")
    plain = chat(tools=TOOLS, tool_choice="required", thinking={"type": "disabled"})
    assert plain.parsing_options.starts_in_tool_calls
    assert encoding.render_conversation(plain.conversation).prompt.endswith("calls>\n")


def test_allowed_tools_limit_calls_but_not_the_prompt() -> None:
    requests = [
        chat(
            tools=TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[1]]}}
        ),
        responses(tools=ITEM_TOOLS, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [ITEM_TOOLS[1]]}),
    ]
    for request in requests:
        assert [tool.name for tool in request.conversation.tools] == ["f", "g"]
        callable_tools = json.loads(request.inference_options.output_constraint.schema)
        assert [tool["function"]["name"] for tool in callable_tools] == ["g"]


def test_roles_parts_and_blocks_that_only_we_know() -> None:
    developer = chat(messages=[{"role": "developer", "content": "be brief"}, USER])
    assert developer.conversation.messages[0].role == "system"
    png = "data:image/png;base64,AAAA"
    nested = chat(messages=[{"role": "user", "content": [{"type": "file", "file": {"file_data": png}}]}])
    assert nested.conversation.messages[0].image_sources[0].data_url == png
    blocks = [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
        {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "found"}]},
    ]
    shown = messages(messages=[{"role": "user", "content": blocks}]).conversation.messages
    assert [message.content for message in shown] == ["page", "t\ns\nfound"]
    hidden = [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "y"}]
    assert messages(messages=[{"role": "assistant", "content": hidden}, USER]).conversation.messages[0].content == "y"
    failed = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}]},
    ]
    assert messages(messages=failed).conversation.messages[1].content == "Error: no"
    custom = responses(tools=[{"type": "custom", "name": "q", "description": "d"}]).conversation.tools[0]
    assert custom.parameters["required"] == ["input"]


def test_efforts_as_levels_and_thinking_between_tools() -> None:
    request = chat(reasoning_effort=33)
    assert request.conversation.reasoning_effort == 33
    prompt = recipe_rs.DeepseekV41Encoding().render_conversation(request.conversation).prompt
    assert "Reasoning Effort: 33 (" in prompt
    assert messages(thinking={"type": "between_tools"}).conversation.thinking_mode


def test_json_object_needs_no_word_and_n_is_reported() -> None:
    assert chat(response_format={"type": "json_object"}, n=2).n == 2
    empty = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}
    assert chat(response_format=empty).conversation.response_format == "json_schema"


def test_generic_models_keep_the_requested_sampling() -> None:
    options = OPEN.with_generic_model("m", temperature=0.6, top_p=0.9, output_format="hermes")
    body = {"model": "m", "messages": [USER], "chat_template_kwargs": {"enable_thinking": False}}
    request = recipe_rs.ChatCompletionRequest(body).convert(options)
    assert request.model_version == recipe_rs.ModelVersion.Generic
    assert request.inference_options.temperature == pytest.approx(0.6)
    assert request.inference_options.top_p == pytest.approx(0.9)
    assert not request.conversation.thinking_mode
    assert request.parsing_options.output_format == "hermes"
    assert request.chat_template_kwargs == {"enable_thinking": False}
    assert request.resolve_max_tokens(10, 4096) == 4086
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    request = recipe_rs.ChatCompletionRequest({"model": "m", "messages": [{"role": "user", "content": [picture]}]})
    with pytest.raises(recipe_rs.ConversionError) as refused:
        request.convert(options)
    assert refused.value.param == "messages[0].content[0].image_url.url"


@pytest.mark.parametrize("reasoning", [{}, {"reasoning_content": ""}, {"reasoning_content": None}])
def test_b18_b29_missing_and_empty_reasoning_render_alike(reasoning: dict[str, Any]) -> None:
    turn = {"role": "assistant", "content": "x", **reasoning}
    prompt = (
        recipe_rs.DeepseekV41Encoding()
        .render_conversation(chat(messages=[USER, turn, USER], tools=TOOLS).conversation)
        .prompt
    )
    assert "<think></think>x" in prompt


def test_b18_e5_the_three_protocols_give_one_prompt() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    bodies = [
        chat(
            tools=TOOLS,
            messages=[
                USER,
                {"role": "assistant", "reasoning_content": "why", "content": "so", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "r"},
            ],
        ),
        responses(
            tools=ITEM_TOOLS,
            input=[
                USER,
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "why"}]},
                {"role": "assistant", "content": "so"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
                {"type": "function_call_output", "call_id": "c1", "output": "r"},
            ],
        ),
        messages(
            tools=CLIENT_TOOLS,
            messages=[
                USER,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "why", "signature": "foreign"},
                        {"type": "text", "text": "so"},
                        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]},
            ],
        ),
    ]
    for encoding in (recipe_rs.DeepseekV4Encoding(), recipe_rs.DeepseekV41Encoding()):
        assert len({encoding.render_conversation(request.conversation).prompt for request in bodies}) == 1
