"""A model that thinks before it answers: what is shown where, budgets (B28), and forms that hold for the answer."""

import asyncio
import json
from dataclasses import replace

import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.async_engine import AsyncEngine
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer_api.app import create_app
from deepinfer_api.backends.engine import EngineBackend
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.asgi import AsgiClient
from deepinfer_api.testing.byte_codec import (
    EOS_ID,
    START_ID,
    THINKING_END_ID,
    THINKING_START_ID,
    byte_ids,
    make_byte_codec,
    make_byte_vocabulary,
)
from deepinfer_api.testing.stream_rules import check_stream

CHAT = "/v1/chat/completions"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% elif opens is defined %}<think>\n{% endif %}{% endif %}"
)
CODEC = make_byte_codec(chat_template=TEMPLATE, can_think=True)
START, END = [THINKING_START_ID], [THINKING_END_ID]
MESSAGES = [{"role": "user", "content": "hi <think> </think>"}]


def script(*parts):
    ids = [token_id for part in parts for token_id in (byte_ids(part) if isinstance(part, str) else part)]

    def steps(request):
        for token_id in ids:
            yield [token_id]
        yield [EOS_ID]

    return steps


def in_pieces(*parts, size):
    ids = [token_id for part in parts for token_id in (byte_ids(part) if isinstance(part, str) else part)] + [EOS_ID]

    def steps(request):
        for begin in range(0, len(ids), size):
            yield ids[begin : begin + size]

    return steps


def ask(server, **body):
    answer = asyncio.run(server.client.post(CHAT, {"messages": MESSAGES} | body))
    assert answer.status == 200, answer.body
    return answer.json()


OPENED = {"chat_template_kwargs": {"opens": True}}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("parts", "body", "reasoning", "content", "num_reasoning"),
    [
        ((START, "I see\u2026", END, "Yes."), {}, "I see\u2026", "Yes.", 10),
        (("I see", END, "Yes."), OPENED, "I see", "Yes.", 6),
        (("Yes.",), {}, None, "Yes.", 0),
        ((START, END, "Yes."), {}, None, "Yes.", 2),
        (("Yes", START, "no", END), {}, None, "Yesno", 0),
        ((START, "never ends"), {}, "never ends", "", 11),
        (("never ends",), OPENED, "never ends", "", 10),
        (("Yes.",), {"thinking": {"type": "disabled"}}, None, "Yes.", 0),
        (("Yes.",), {"chat_template_kwargs": {"enable_thinking": False}}, None, "Yes.", 0),
    ],
)
def test_the_thinking_is_shown_apart(make_server, parts, body, reasoning, content, num_reasoning, size):
    server = make_server(in_pieces(*parts, size=size), codec=CODEC)
    whole = ask(server, **body)
    message = whole["choices"][0]["message"]
    if content == "Yesno":
        content = message["content"]  # markers inside an answer are the model's own text
        assert content.replace("<think>", "").replace("</think>", "") == "Yesno"
    assert (message.get("reasoning_content"), message["content"]) == (reasoning, content)
    assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == num_reasoning
    num_tokens = sum(len(byte_ids(part)) if isinstance(part, str) else 1 for part in parts)
    assert whole["usage"]["completion_tokens"] == num_tokens + 1

    raw = asyncio.run(server.client.post(CHAT, {"messages": MESSAGES, "stream": True} | body))
    check_stream(raw.writes, raw.headers, is_chat=True)
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in raw.body.decode().split("\n\n")[:-2]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == (reasoning or "")
    assert "".join(delta.get("content", "") for delta in deltas) == content
    shown = [key for delta in deltas for key in delta if key in ("reasoning_content", "content") and delta[key]]
    assert shown == sorted(shown, reverse=True)


def test_markers_in_user_text_are_text():
    """B22 for the markers of thinking."""
    prompt = CODEC.encode_chat(MESSAGES, template_kwargs={}, add_generation_prompt=True, continue_final_message=False)
    assert not {THINKING_START_ID, THINKING_END_ID} & set(prompt.token_ids)
    assert START_ID in prompt.token_ids


def test_stop_strings_and_logprobs_are_those_of_the_answer(make_server):
    server = make_server(script(START, "stop here", END, "a stop b"), codec=CODEC)
    answer = ask(server, stop="stop", logprobs=True, return_token_ids=True)["choices"][0]
    assert answer["message"]["reasoning_content"] == "stop here"
    assert answer["message"]["content"] == "a "
    assert [entry["token"] for entry in answer["logprobs"]["content"]] == ["a", " "]
    assert answer["token_ids"] == [*START, *byte_ids("stop here"), *END, *byte_ids("a ")]


def test_fields_about_thinking_have_an_effect_only_where_a_model_thinks(make_server):
    body = {"messages": MESSAGES, "thinking": {"type": "enabled", "budget_tokens": 7}, "thinking_token_budget": None}
    for codec, ignored in ((CODEC, None), (make_byte_codec(), "thinking")):
        server = make_server("x", codec=codec)
        answer = asyncio.run(server.client.post(CHAT, body))
        assert answer.status == 200
        assert answer.headers.get("x-ignored-fields") == ignored
    params = server.backend.requests[-1].sampling_params
    assert params.max_thinking_tokens is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"thinking": "on"}, "thinking"),
        ({"thinking": {}}, "thinking.type"),
        ({"thinking": {"type": "loud"}}, "thinking.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": "9"}}, "thinking.budget_tokens"),
        ({"thinking_token_budget": -1}, "thinking_token_budget"),
    ],
)
def test_refusals(make_server, fields, param):
    answer = asyncio.run(make_server("x", codec=CODEC).client.post(CHAT, {"messages": MESSAGES} | fields))
    assert answer.status == 400
    assert answer.json()["error"]["param"] == param


class EngineServer:
    """The real engine behind the application; its model never ends its thinking by itself."""

    def __init__(self, *, opens_by_itself):
        def choose(tokens, params):
            if tokens[-1] == 10 and tokens[-2] == ord("t"):  # the end of the prompt, `assistant\n`
                return THINKING_START_ID if opens_by_itself else ord("y")
            return 97 + len(tokens) % 26

        model = replace(make_scripted_model_config(vocab_size=261), eos_token_ids=(EOS_ID,))
        executor = ScriptedExecutor(num_blocks=128, block_size=16, model_config=model, choose_token=choose)
        config = EngineConfig(model=".", cache=CacheConfig(block_size=16), scheduler=SchedulerConfig(max_num_seqs=4))
        core = make_engine_core(config, executor, model_identity=b"t")
        self.engine = AsyncEngine(core, make_vocabulary=lambda: make_byte_vocabulary(can_think=True))
        self.client = AsgiClient(create_app(EngineBackend(self.engine), CODEC, ServerSettings(model_name="m")))

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.engine.close()


CHOICE = {"structured_outputs": {"choice": ["yes", "no"]}}


def test_a_form_without_thinking_holds_from_the_first_token():
    with EngineServer(opens_by_itself=False) as server:
        for body in ({}, {"thinking": {"type": "enabled", "budget_tokens": 3}}, {"thinking": {"type": "disabled"}}):
            message = ask(server, **CHOICE, **body)["choices"][0]["message"]
            assert message["content"] in ("yes", "no")
            assert "reasoning_content" not in message


@pytest.mark.parametrize("budget", [0, 1, 5, 40])
@pytest.mark.parametrize("opens", ["template", "model"])
def test_the_budget_ends_the_thinking_with_one_marker_and_then_the_form_holds(budget, opens):
    """B28: the marker is one token that both the engine and the parser see; usage counts the thinking."""
    with EngineServer(opens_by_itself=opens == "model") as server:
        body = CHOICE | (OPENED if opens == "template" else {})
        body |= {"thinking": {"type": "enabled", "budget_tokens": budget}, "return_token_ids": True, "temperature": 0}
        answer = ask(server, **body)
        choice = answer["choices"][0]
        assert choice["message"]["content"] in ("yes", "no")
        assert choice["finish_reason"] == "stop"
        assert choice["token_ids"].count(THINKING_END_ID) == 1
        num_thought = max(budget, 1) if opens == "model" else budget
        assert choice["token_ids"].index(THINKING_END_ID) == num_thought
        assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == num_thought + 1
        assert ask(server, **body, thinking_token_budget=2)["choices"][0]["token_ids"].index(THINKING_END_ID) == 2
        # What was thought is in the cache like any other output.
        history = [*MESSAGES, {"role": "assistant", "content": "x"}, *MESSAGES]
        assert ask(server, messages=history)["usage"]["prompt_tokens_details"]["cached_tokens"] > 20


def test_without_a_budget_the_context_ends_the_thinking():
    with EngineServer(opens_by_itself=True) as server:
        choice = ask(server, **CHOICE, max_tokens=50)["choices"][0]
        assert choice["finish_reason"] == "length"
        assert choice["message"]["content"] == ""
        assert len(choice["message"]["reasoning_content"]) == 49
