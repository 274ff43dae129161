"""The conditions under which requests are refused, each with the field that the message has to name."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

CHAT, RESPONSES, MESSAGES = "ChatCompletionRequest", "ResponsesRequest", "MessagesRequest"
OFF = {"thinking": {"type": "disabled"}}
OBJECT = {"type": "object"}


@dataclass(frozen=True)
class Row:
    """One condition: fields that replace those of a valid body (... removes one), and what the refusal names."""

    name: str
    request_class: str
    changes: dict[str, Any]
    named: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()

    def body(self, valid: dict[str, Any]) -> dict[str, Any]:
        changed = {**copy.deepcopy(valid), **copy.deepcopy(self.changes)}
        return {key: member for key, member in changed.items() if member is not ...}


def _chat(name: str, named: str | tuple[str, ...], **changes: Any) -> Row:
    return Row(f"chat {name}", CHAT, changes, (named,) if isinstance(named, str) else named)


def _responses(name: str, named: str | tuple[str, ...], **changes: Any) -> Row:
    return Row(f"responses {name}", RESPONSES, changes, (named,) if isinstance(named, str) else named)


def _messages(name: str, named: str | tuple[str, ...], **changes: Any) -> Row:
    return Row(f"messages {name}", MESSAGES, changes, (named,) if isinstance(named, str) else named)


def user(content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any = ..., **more: Any) -> dict[str, Any]:
    return {"role": "assistant", **({} if content is ... else {"content": content}), **more}


def chat_call(id_: str = "1", **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}


def chat_result(id_: str = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "r"}


def chat_tool(name: str = "f", parameters: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def image(url: Any) -> dict[str, Any]:
    return user([{"type": "image_url", "image_url": {"url": url}}])


def strict_tool(parameters: Any) -> list[dict[str, Any]]:
    return [chat_tool(parameters=parameters, strict=True)]


def function(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": OBJECT, **more}


def item_call(id_: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": "f", "arguments": "{}"}


def item_output(id_: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": "r", **more}


def use(id_: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "f", "input": {}, **more}


def result(id_: str = "t1", content: Any = "r") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


def addition(name: str) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


def client_tool(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": OBJECT, **more}


TEXT = {"type": "text", "text": "x"}
PROPERTIES = {"type": "object", "properties": {"a": {"type": "string"}}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "foo"}}}

PARSE_ROWS = [
    *[_chat(f"model {m!r}", "model", model=m) for m in (None, 3, ...)],
    *[_chat(f"messages {m!r}", "messages", messages=m) for m in (None, "x", ...)],
    *[_messages(f"messages {m!r}", "messages", messages=m) for m in (None, {})],
    *[_chat(f"{f} {v!r}", f, **{f: v}) for f in ("temperature", "top_p") for v in ("1", True)],
    *[_chat(f"max_tokens {v!r}", "max_tokens", max_tokens=v) for v in (-1, 1.5, "1")],
    *[_chat(f"n {v!r}", "n", n=v) for v in (1.5, 256, -1)],
    *[_chat(f"seed {v!r}", "seed", seed=v) for v in (-1, 1.5)],
    _chat("logprobs", "logprobs", logprobs="x"),
    _chat("top_logprobs negative", "top_logprobs", logprobs=True, top_logprobs=-1),
    _chat("stream", "stream", stream="x"),
    *[_chat(f"thinking {v!r}", "thinking", thinking=v) for v in ("on", {}, {"type": "x"})],
    *[_messages(f"thinking {v!r}", "thinking", thinking=v) for v in ("on", {}, {"type": "x"})],
    *[_chat(f"effort {v!r}", "reasoning_effort", reasoning_effort=v) for v in ("", "High", 500)],
    _responses("effort", "reasoning.effort", reasoning={"effort": "x"}),
    _messages("effort", "output_config.effort", output_config={"effort": "x"}),
    *[_chat(f"format {v!r}", "response_format", response_format=v) for v in ("json", {"type": "x"}, {})],
    _chat("format without schema", "response_format.json_schema", response_format={"type": "json_schema"}),
    _chat("format without regex", "response_format.regex", response_format={"type": "regex"}),
    _chat("no role", "messages[0].role", messages=[{"content": "x"}]),
    *[_chat(f"role {v!r}", "messages[0].role", messages=[{"role": v, "content": "x"}]) for v in ("developer", "x")],
    *[_chat(f"content {v!r}", "messages[0].content", messages=[user(v)]) for v in (None, 5, {})],
    _chat("part type", "messages[0].content[0].type", messages=[user([{"type": "input_audio"}])]),
    _chat("part text", "messages[0].content[0].text", messages=[user([{"type": "text"}])]),
    _chat("part no object", "messages[0].content[1]", messages=[user([TEXT, 5])]),
    _chat(
        "image_url string",
        "messages[0].content[0].image_url",
        messages=[user([{"type": "image_url", "image_url": "x"}])],
    ),
    _chat("call type", "messages[0].tool_calls[0].type", messages=[assistant(tool_calls=[chat_call(type="x")])]),
    _chat(
        "call arguments",
        "messages[0].tool_calls[0].function.arguments",
        messages=[assistant(tool_calls=[chat_call(function={"name": "f"})])],
    ),
    *[_chat(f"tool {v!r}", "tools[0]", tools=[v]) for v in (5, {"type": "x"}, {"type": "function"})],
    *[
        _chat(f"choice {v!r}", "tool_choice", tool_choice=v)
        for v in ("x", {"type": "x"}, {"type": "function", "function": None})
    ],
    *[_responses(f"input {v!r}", "input", input=v) for v in (5, {})],
    *[
        _responses(f"item {v!r}", "input[0]", input=[v])
        for v in (5, {"content": "x"}, {"role": "tool", "content": "x"})
    ],
    _responses("part type", "input[0].content[0]", input=[user([{"type": "text", "text": "x"}])]),
    _responses("reasoning content", "input[0].content", input=[{"type": "reasoning", "content": "x"}]),
    _responses("output type", "input[1].output", input=[item_call(), item_output(output=5)]),
    _responses(
        "search arguments", "input[0].arguments", input=[{"type": "tool_search_call", "call_id": "c", "arguments": "x"}]
    ),
    _responses("instructions", "instructions", instructions=5),
    _responses("summary", "reasoning.summary", reasoning={"summary": "x"}),
    _responses("verbosity", "text.verbosity", text={"verbosity": "x"}),
    _responses("format regex", "text.format", text={"format": {"type": "regex", "regex": "a"}}),
    _responses("format name", "text.format.name", text={"format": {"type": "json_schema", "schema": {}}}),
    _responses(
        "search_context_size",
        "tools[0].search_context_size",
        tools=[{"type": "web_search", "search_context_size": "x"}],
    ),
    _responses(
        "namespace tool", "tools[0].tools[0]", tools=[{"type": "namespace", "name": "n", "tools": [{"type": "x"}]}]
    ),
    *[
        _responses(f"choice {v!r}", "tool_choice", tool_choice=v)
        for v in ("x", {"type": "mcp"}, {"type": "file_search"})
    ],
    *[_messages(f"max_tokens {v!r}", "max_tokens", max_tokens=v) for v in (-1, 1.5)],
    _messages("stop_sequences", "stop_sequences", stop_sequences="x"),
    _messages("user_id", "metadata.user_id", metadata={"user_id": 5}),
    *[_messages(f"system {v!r}", "system", system=v) for v in (5, [{"type": "image"}])],
    *[
        _messages(f"message {v!r}", "messages[0]", messages=[v])
        for v in ({"role": "user"}, {"role": "tool", "content": "x"})
    ],
    *[
        _messages(f"block {v!r}", "messages[0].content[0]", messages=[user([v])])
        for v in ({"type": "text"}, {"type": "x"}, {"type": "tool_use", "id": "t", "name": "f"})
    ],
    _messages(
        "media type",
        "messages[0].content[0]",
        messages=[user([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}}])],
    ),
    *[_messages(f"tool {v!r}", "tools[0]", tools=[v]) for v in ({"input_schema": OBJECT}, 5)],
    *[_messages(f"choice {v!r}", "tool_choice", tool_choice=v) for v in ("auto", {"type": "required"})],
]

VALUE_ROWS = [
    *[
        Row(f"model of {c}", c, {"model": "x"}, ("model", "DeepSeek-V4-Pro", "DeepSeek-V4.1-Flash"))
        for c in (CHAT, RESPONSES, MESSAGES)
    ],
    _chat("no messages", "messages", messages=[]),
    _messages("no messages", "messages", messages=[]),
    _responses("no items", "input", input=[]),
    _responses("nothing", "input", input=...),
    *[_chat(f"max_tokens {v}", ("max_tokens", "393216"), max_tokens=v) for v in (0, 393217)],
    *[_responses(f"max_output_tokens {v}", ("max_output_tokens", "393216"), max_output_tokens=v) for v in (0, 393217)],
    _messages("max_tokens 0", ("max_tokens", "393216"), max_tokens=0),
    *[Row(f"temperature of {c}", c, {"temperature": 2.5}, ("temperature", "2")) for c in (CHAT, RESPONSES, MESSAGES)],
    *[Row(f"top_p {v} of {c}", c, {"top_p": v}, ("top_p", "1")) for c in (CHAT, RESPONSES, MESSAGES) for v in (0, 1.5)],
    *[_chat(f, f, **{f: 2.5}) for f in ("frequency_penalty", "presence_penalty")],
    _chat("n 2", "n", n=2),
    _chat("seed 2^63", "seed", seed=2**63),
    _chat("top_logprobs alone", ("top_logprobs", "logprobs"), top_logprobs=2),
    _chat("top_logprobs 21", "top_logprobs", logprobs=True, top_logprobs=21),
    _responses("top_logprobs 21", "top_logprobs", top_logprobs=21),
    _chat("empty stop", "stop", stop=""),
    _chat("empty stop of two", "stop[1]", stop=["a", ""]),
    _chat("17 stops", ("stop", "17"), stop=["a"] * 17),
    _messages("empty stop", "stop[1]", stop_sequences=["a", ""]),
    _messages("17 stops", ("stop", "17"), stop_sequences=["a"] * 17),
    _chat("stream_options", "stream_options", stream_options={"include_usage": True}),
    _chat(
        "json_object without the word", "response_format", response_format={"type": "json_object"}, messages=[user("x")]
    ),
    _responses("json_object without the word", "text.format", text={"format": {"type": "json_object"}}, input="x"),
    _chat("schema", "schema", response_format=JSON_SCHEMA),
    _responses("schema", "schema", text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "foo"}}}),
    _chat("result alone", ("messages", "tool_calls"), messages=[user(), chat_result()]),
    _chat("call alone", ("messages", "tool_call_id"), messages=[user(), assistant(tool_calls=[chat_call()])]),
    _chat(
        "wrong result", ("tool_call_id", "2"), messages=[user(), assistant(tool_calls=[chat_call()]), chat_result("2")]
    ),
    _chat(
        "call twice",
        ("tool_call_id", "message[1]"),
        messages=[user(), assistant(tool_calls=[chat_call(), chat_call()]), chat_result(), chat_result()],
    ),
    _chat("empty calls", "messages[1].tool_calls", messages=[user(), assistant(tool_calls=[])]),
    _chat("empty assistant", ("messages", "content"), messages=[user(), assistant()]),
    _chat("prefix inside", "prefix", messages=[assistant("x", prefix=True), user()]),
    _chat("prefix with tools", "prefix", messages=[user(), assistant("x", prefix=True)], tools=[chat_tool()]),
    _chat("image of assistant", "messages", messages=[user(), assistant(image("http://x")["content"])]),
    _responses("image of assistant", "input[0]", input=[assistant([{"type": "input_image", "image_url": "http://x"}])]),
    _messages(
        "image of assistant",
        "messages",
        messages=[assistant([{"type": "image", "source": {"type": "url", "url": "http://x"}}])],
    ),
    *[
        _chat(f"image {v[:30]!r}", ".messages[0]", messages=[image(v)])
        for v in ("ftp://x", "data:image/png;base64,A-_A", "x")
    ],
    _chat("empty file", ".messages[0]", messages=[user([{"type": "file"}])]),
    _chat("long URL", (".messages[0].image_url.url[0]", "8192"), messages=[image("http://x/" + "a" * 8192)]),
    *[_chat(f"tool name {v[:9]!r}", "tools[0].function.name", tools=[chat_tool(v)]) for v in ("", "a b", "f" * 129)],
    *[_responses(f"tool name {v[:9]!r}", "tools[0].name", tools=[function(v)]) for v in ("", "a b", "f" * 129)],
    *[_messages(f"tool name {v[:9]!r}", "tools[0].name", tools=[client_tool(v)]) for v in ("", "a b", "f" * 129)],
    _responses(
        "namespaced name",
        "tools[0].tools[0].name",
        tools=[{"type": "namespace", "name": "n", "tools": [function("a b")]}],
    ),
    _chat("same names", "tools", tools=[chat_tool(), chat_tool()]),
    _responses("same names", "tools", tools=[function(), function()]),
    _messages("same names", "tools", tools=[client_tool(), client_tool()]),
    *[
        _chat(f"parameters {v!r}", "f", tools=[chat_tool(parameters=v)])
        for v in ({}, {"type": "string"}, {"type": ["object"]}, {"type": "object", "properties": 1})
    ],
    _responses("parameters", "f", tools=[function(parameters={"type": "string"})]),
    *[
        _messages(f"input_schema {v!r}", "f", tools=[{"name": "f", **v}])
        for v in ({}, {"input_schema": None}, {"input_schema": {}})
    ],
    *[
        _chat(f"strict {v!r}", "tool parameters", tools=strict_tool(v))
        for v in (
            {},
            {"type": "string"},
            {**PROPERTIES, "required": []},
            {**PROPERTIES, "required": ["b"]},
            {**PROPERTIES, "additionalProperties": True},
            {"type": "object", "properties": {"a": {}}},
            {"type": "object", "properties": {"a": {"type": "object"}}},
            {"type": "object", "properties": {"a": {"type": "array"}}},
            {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}},
            {"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}},
        )
    ],
    _chat(
        "strict tool and schema",
        ("response_format", "tools"),
        tools=[chat_tool(strict=True)],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": OBJECT}},
    ),
    _chat("required with thinking", "tool_choice", tools=[chat_tool()], tool_choice="required"),
    _responses("required with thinking", "tool_choice", tools=[function()], tool_choice="required"),
    _messages(
        "required with thinking", "tool_choice", tools=[client_tool()], tool_choice={"type": "tool", "name": "f"}
    ),
    _chat(
        "unknown choice",
        ("tool_choice", "g"),
        tools=[chat_tool()],
        tool_choice={"type": "function", "function": {"name": "g"}},
    ),
    _responses(
        "unknown choice", ("tool_choice", "g"), tools=[function()], tool_choice={"type": "function", "name": "g"}
    ),
    _messages("unknown choice", ("tool_choice", "g"), tools=[client_tool()], tool_choice={"type": "tool", "name": "g"}),
    *[
        _responses(f"input_image {sorted(v)}", "input[0].content[0]", input=[user([{"type": "input_image", **v}])])
        for v in ({}, {"file_id": "x"}, {"file_id": "x", "image_url": "http://x"})
    ],
    _responses("call without output", "call_id", input=[item_call()]),
    _responses("output without call", "call_id", input=[item_output()]),
    _responses("two outputs", "call_id", input=[item_call(), item_output(), item_output()]),
    _responses("call twice", "call_id", input=[item_call(), item_call(), item_output()]),
    _responses("empty call_id", "input[1].call_id", input=[item_call(), item_output("")]),
    _responses("custom tool", "q", tools=[{"type": "custom", "name": "q"}]),
    _responses(
        "custom in namespace",
        "tools[0].tools[0]",
        tools=[{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "q"}]}],
    ),
    Row(
        "responses web search",
        RESPONSES,
        {"tools": [{"type": "web_search"}]},
        ("tools",),
        (("responses_web_search", ("WebSearchBehavior", "Reject")),),
    ),
    _messages("empty content", "messages.0", messages=[user([])]),
    *[
        _messages(f"image {v!r}", "messages.0.content[0]", messages=[user([{"type": "image", "source": v}])])
        for v in (
            {"type": "base64", "media_type": "image/png", "data": "###"},
            {"type": "url", "url": "ftp://x"},
            {"type": "file", "file_id": "x"},
        )
    ],
    *[
        _messages(f"{v[1]} of {v[0]}", "messages.0", messages=[{"role": v[0], "content": [v[2]]}])
        for v in (
            ("user", "thinking", {"type": "thinking", "thinking": "x"}),
            ("user", "use", use()),
            ("assistant", "result", result()),
            ("user", "search result", {"type": "web_search_tool_result"}),
            ("user", "addition", addition("f")),
        )
    ],
    _messages("use alone", ("messages.1", "t1"), messages=[user(), assistant([use()])]),
    _messages(
        "text before results", ("messages.2", "t1"), messages=[user(), assistant([use()]), user([TEXT, result()])]
    ),
    _messages(
        "text after the use", ("messages.1.1", "t1"), messages=[user(), assistant([use(), TEXT]), user([result()])]
    ),
    _messages("result alone", ("messages.1.content.0", "tool_use_id"), messages=[user(), user([result()])]),
    _messages("use twice", "messages.1.content.1", messages=[user(), assistant([use(), use()]), user([result()])]),
    _messages("two results", "messages.2.content.1", messages=[user(), assistant([use()]), user([result(), result()])]),
    _messages(
        "unknown reference",
        ("messages.2.content.0", "g"),
        tools=[client_tool()],
        messages=[user(), assistant([use()]), user([result(content=[{"type": "tool_reference", "tool_name": "g"}])])],
    ),
    _messages(
        "unknown addition",
        ("messages.1.content.0", "g"),
        tools=[client_tool()],
        messages=[user(), {"role": "system", "content": [addition("g")]}],
    ),
    _messages("server block", "content", messages=[user(), assistant([{"type": "server_tool_use"}])]),
    *[_messages(f"tool type {v!r}", "tools[0]", tools=[client_tool(type=v)]) for v in ("custom", "bash_20250124")],
    _messages("all deferred", "tools", tools=[client_tool(defer_loading=True)]),
    *[
        Row(
            f"reasoning of {c}",
            c,
            changes,
            (named,),
            (("reasoning_content_behavior", ("ReasoningContentBehavior", "Reject")),),
        )
        for c, named, changes in (
            (CHAT, "reasoning_content", {"messages": [user(), assistant(tool_calls=[chat_call()]), chat_result()]}),
            (RESPONSES, "reasoning_text", {"input": [user(), item_call(), item_output()]}),
            (MESSAGES, "content[].thinking", {"messages": [user(), assistant([use()]), user([result()])]}),
        )
    ],
]

ROWS = [*PARSE_ROWS, *VALUE_ROWS]
