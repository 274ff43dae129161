"""A converted request as plain data, for either codec."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from tests.parity.conversion_differences import Outcome

INFERENCE_FIELDS = ["max_tokens", "temperature", "top_p", "logprobs", "top_logprobs", "seed"]


def _image(source: Any) -> tuple[Any, ...]:
    return source.kind, source.detail, source.path, source.data_url, source.url, source.data


def _tool(tool: Any) -> tuple[Any, ...]:
    return tool.name, tool.description, json.dumps(tool.parameters), tool.strict, tool.defer_loading


def _message(message: Any) -> tuple[Any, ...]:
    calls, tools = message.tool_calls, getattr(message, "tools", None)
    return (
        type(message).__name__,
        message.role,
        message.content,
        message.reasoning_content,
        message.tool_call_id,
        message.prefix,
        None if calls is None else [(call.id, call.name, call.arguments) for call in calls],
        [_image(source) for source in message.image_sources],
        None if tools is None else [_tool(tool) for tool in tools],
    )


def request_data(request: Any) -> dict[str, Any]:
    """Everything that a converted request says."""
    conversation, inference, parsing = request.conversation, request.inference_options, request.parsing_options
    constraint = inference.output_constraint
    return {
        "messages": [_message(message) for message in conversation.messages],
        "thinking": conversation.thinking_mode,
        "effort": conversation.reasoning_effort,
        "tools": [_tool(tool) for tool in conversation.tools],
        "tool_choice": conversation.tool_choice,
        "response_format": conversation.response_format,
        "response_schema": json.dumps(conversation.response_schema),
        "response_regex": conversation.response_regex,
        "inference": {name: getattr(inference, name) for name in INFERENCE_FIELDS},
        "constraint": constraint and (constraint.kind, constraint.schema),
        "parsing": [
            parsing.parse_tool_calls,
            parsing.starts_in_tool_calls,
            parsing.parse_json_output,
            str(parsing.thinking_initial_stage),
            list(parsing.stop_sequences),
        ],
        "model_version": str(request.model_version),
        "stream": request.stream,
    }


def conversion(codec: ModuleType, request_class: str, body: Any, options: Any) -> Outcome:
    """What `codec` makes of a body."""
    try:
        request = getattr(codec, request_class)(body)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        return Outcome("constructor", str(error))
    try:
        converted = request.convert(options)
    except codec.ConversionError as error:
        if error.status_code != 400:
            raise
        return Outcome("convert", str(error))
    data = request_data(converted)
    is_v41 = "V41" in data["model_version"]
    encoding = codec.DeepseekV41Encoding() if is_v41 else codec.DeepseekV4Encoding()
    rendered = encoding.render_conversation(converted.conversation)
    return Outcome("ok", {**data, "prompt": rendered.prompt, "special_ranges": rendered.special_ranges})
