"""Chat completions: streamed and whole answers say the same, and every stream keeps the rules."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepinfer_api.testing.byte_codec import EOS_ID, byte_ids, make_byte_codec
from deepinfer_api.testing.scripts import text_script
from deepinfer_api.testing.stream_rules import check_usage

PATH = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
TEXT = "Hällo, wörld 🌍! 漢字\u2028end"


def body(**fields):
    return {"model": "m", "messages": [USER], **fields}


def test_whole_answer(make_server):
    server = make_server(TEXT)
    answer = asyncio.run(server.client.post(PATH, body()))
    assert answer.status == 200
    shown = answer.json()
    assert shown["object"] == "chat.completion"
    assert shown["id"].startswith("chatcmpl-")
    assert shown["model"] == "m"
    (choice,) = shown["choices"]
    assert choice["message"] == {"role": "assistant", "content": TEXT, "refusal": None}
    assert (choice["finish_reason"], choice["stop_reason"], choice["logprobs"]) == ("stop", EOS_ID, None)
    usage = check_usage(shown["usage"])
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    num_prompt = len(prompt) - 2 * len("<|im_start|>") - len("<|im_end|>") + 3
    assert usage["prompt_tokens"] == num_prompt
    assert usage["completion_tokens"] == len(TEXT.encode()) + 1
    assert set(shown["timings"]) >= {"cache_n", "prompt_n", "prompt_ms", "prompt_per_second", "predicted_n",
                                     "predicted_ms", "predicted_per_second"}  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.booleans())
def test_streamed_equals_whole_for_any_text_and_steps(make_server, text, sizes, ends):
    server = make_server(text_script(text, sizes=sizes, ends=ends))
    whole = asyncio.run(server.client.post(PATH, body())).json()
    _, streamed = asyncio.run(server.stream(PATH, body(stream_options={"include_usage": True})))
    choice = streamed.choices[0]
    assert choice.text == whole["choices"][0]["message"]["content"] == text
    assert choice.finish_reason == whole["choices"][0]["finish_reason"]
    assert streamed.usage == whole["usage"]
    assert streamed.timings["predicted_n"] == whole["timings"]["predicted_n"]


def test_one_write_a_step(make_server):
    raw, streamed = asyncio.run(make_server("abcdef").stream(PATH, body()))
    # Six steps with text, the end token's final chunk, and the end mark.
    assert len(raw.writes) == 8
    assert streamed.timings is not None


def test_lengths_end_with_length(make_server):
    server = make_server("abcdef")
    whole = asyncio.run(server.client.post(PATH, body(max_tokens=3))).json()
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["choices"][0]["message"]["content"] == "abc"
    assert whole["usage"]["completion_tokens"] == 3
    _, streamed = asyncio.run(server.stream(PATH, body(max_completion_tokens=2, max_tokens=5)))
    assert streamed.choices[0].text == "ab"


def test_a_cut_character_is_replaced_at_the_end_only(make_server):
    server = make_server("ab漢")
    _, streamed = asyncio.run(server.stream(PATH, body(max_tokens=3), allow_replacement=True))
    whole = asyncio.run(server.client.post(PATH, body(max_tokens=3))).json()
    assert streamed.choices[0].text == whole["choices"][0]["message"]["content"] == "ab\ufffd"


def test_several_choices(make_server):
    def script(request):
        number = int(request.request_id[-1])
        yield from ([byte] for byte in byte_ids(f"choice {number}"))
        yield [EOS_ID]

    server = make_server(script)
    request = body(n=3, seed=7, stream_options={"include_usage": True})
    _, streamed = asyncio.run(server.stream(PATH, request))
    assert {i: c.text for i, c in streamed.choices.items()} == {i: f"choice {i}" for i in range(3)}
    assert [r.sampling_params.seed for r in server.backend.requests] == [7, 8, 9]
    whole = asyncio.run(server.client.post(PATH, body(n=3))).json()
    assert [c["message"]["content"] for c in whole["choices"]] == [f"choice {i}" for i in range(3)]
    assert whole["usage"] == streamed.usage
    assert whole["usage"]["completion_tokens"] == 3 * len("choice 0.")


@pytest.mark.parametrize("top_logprobs", [None, 0, 2])
def test_logprobs(make_server, top_logprobs):
    server = make_server("aé!")
    request = body(logprobs=True, top_logprobs=top_logprobs)
    whole = asyncio.run(server.client.post(PATH, request)).json()["choices"][0]["logprobs"]["content"]
    _, streamed = asyncio.run(server.stream(PATH, request))
    assert streamed.choices[0].logprobs == whole
    assert [entry["token"] for entry in whole] == ["a", "bytes:\\xc3", "bytes:\\xa9", "!"]
    assert bytes(byte for entry in whole for byte in entry["bytes"]).decode() == "aé!"
    assert all(len(entry["top_logprobs"]) == (top_logprobs or 0) for entry in whole)
    assert all(entry["logprob"] <= 0 for entry in whole)


def test_continuous_usage_counts_up(make_server):
    raw, streamed = asyncio.run(
        make_server("abc").stream(PATH, body(stream_options={"include_usage": True, "continuous_usage_stats": True}))
    )
    counts = [
        json.loads(frame[6:])["usage"]["completion_tokens"]
        for frame in raw.body.split(b"\n\n")
        if frame.startswith(b"data: {")
    ]
    assert counts == sorted(counts)
    assert counts[-1] == streamed.usage["completion_tokens"] == 4


def test_token_ids_and_prompt_logprobs(make_server):
    server = make_server("ab")
    whole = asyncio.run(server.client.post(PATH, body(return_token_ids=True, prompt_logprobs=1))).json()
    assert whole["choices"][0]["token_ids"] == byte_ids("ab")
    assert len(whole["prompt_token_ids"]) == len(whole["prompt_logprobs"]) == whole["usage"]["prompt_tokens"]
    assert whole["prompt_logprobs"][0] is None
    _, streamed = asyncio.run(server.stream(PATH, body(return_token_ids=True)))
    assert streamed.choices[0].token_ids == byte_ids("ab")


def test_sampling_fields_reach_the_engine(make_server):
    server = make_server()
    fields = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1,
              "frequency_penalty": 0.2, "presence_penalty": -0.3, "seed": 5, "ignore_eos": True, "min_tokens": 1,
              "priority": 3, "cache_salt": "tenant"}  # fmt: skip
    request = body(**fields, logit_bias={"65": -5}, stop_token_ids=[66], bad_words=["no"], max_tokens=4)
    assert asyncio.run(server.client.post(PATH, request)).status == 200
    params = server.backend.requests[0].sampling_params
    assert {name: getattr(params, name) for name in fields} == fields
    assert params.logit_bias == {65: -5.0}
    assert params.stop_token_ids == (66,)
    assert set(params.bad_words_token_ids) == {tuple(byte_ids("no")), tuple(byte_ids(" no"))}
    assert params.max_tokens == 4


def test_defaults_of_the_model_are_used_where_nothing_is_given(make_server):
    server = make_server(default_sampling={"temperature": 0.3, "top_k": 20})
    asyncio.run(server.client.post(PATH, body(top_k=5)))
    params = server.backend.requests[0].sampling_params
    assert (params.temperature, params.top_k, params.max_tokens) == (0.3, 5, None)


def test_special_tokens_in_user_text_stay_text(make_server):
    """B22: the spelling of a control token in a message is plain text."""
    server = make_server()
    asyncio.run(server.client.post(PATH, body(messages=[{"role": "user", "content": "a<|im_end|>b"}])))
    ids = list(server.backend.requests[0].prompt_token_ids)
    assert sum(i >= 256 for i in ids) == 3
    assert bytes(i for i in ids if i < 256).decode() == "user\na<|im_end|>b\nassistant\n"


def test_special_tokens_of_the_model_are_hidden_unless_asked_for(make_server):
    server = make_server(lambda request: [byte_ids("a"), [256], byte_ids("b"), [EOS_ID]])
    assert asyncio.run(server.client.post(PATH, body())).json()["choices"][0]["message"]["content"] == "ab"
    shown = asyncio.run(server.client.post(PATH, body(skip_special_tokens=False))).json()
    assert shown["choices"][0]["message"]["content"] == "a<|im_start|>b"


def test_a_prefix_is_continued(make_server):
    server = make_server()
    messages = [USER, {"role": "assistant", "content": "Well", "prefix": True}]
    asyncio.run(server.client.post(PATH, body(messages=messages)))
    ids = server.backend.requests[0].prompt_token_ids
    assert bytes(i for i in ids if i < 256).decode().endswith("assistant\nWell")


def test_template_variables_pass_through(make_server):
    codec = make_byte_codec(chat_template="{{ messages[0].content }}{% if loud %}!{% endif %}")
    server = make_server(codec=codec)
    asyncio.run(server.client.post(PATH, body(chat_template_kwargs={"loud": True})))
    assert bytes(server.backend.requests[0].prompt_token_ids).decode() == "Hi!"


def test_a_template_that_refuses_is_a_400(make_server):
    codec = make_byte_codec(chat_template="{{ raise_exception('roles must alternate') }}")
    answer = asyncio.run(make_server(codec=codec).client.post(PATH, body()))
    assert answer.status == 400
    assert "roles must alternate" in answer.json()["error"]["message"]
    assert answer.json()["error"]["param"].startswith("messages")


def test_a_model_without_template_says_so(make_server):
    answer = asyncio.run(make_server(codec=make_byte_codec(chat_template=None)).client.post(PATH, body()))
    assert answer.status == 400
    assert "/v1/completions" in answer.json()["error"]["message"]


@pytest.mark.parametrize("prefix", ["/v1", "", "/beta", "/beta/v1"])
def test_every_prefix_serves(make_server, prefix):
    assert asyncio.run(make_server().client.post(f"{prefix}/chat/completions", body())).status == 200


def test_ignored_fields_are_named_in_a_header(make_server):
    answer = asyncio.run(make_server().client.post(PATH, body(temprature=1, user="me", **{"bad,name\n": 1})))
    assert answer.status == 200
    assert set(answer.headers["x-ignored-fields"].split(",")) == {"temprature", "user", "bad?name?"}


def test_long_prompts_are_encoded_off_the_loop_with_the_same_ids(make_server):
    text = "long " * 4000
    server = make_server(backend={"max_model_len": 100_000})
    asyncio.run(server.client.post(PATH, body(messages=[{"role": "user", "content": text}])))
    assert (
        bytes(i for i in server.backend.requests[0].prompt_token_ids if i < 256).decode()
        == f"user\n{text}\nassistant\n"
    )
