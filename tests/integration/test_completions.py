"""Completions: prompts in all forms, echo, logprobs; streamed and whole answers say the same."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepinfer_api.testing.byte_codec import EOS_ID, START_ID, byte_ids, make_byte_codec
from deepinfer_api.testing.scripts import text_script

PATH = "/v1/completions"


def body(**fields):
    return {"model": "m", "prompt": "Hi", "max_tokens": 50, **fields}


def post(server, **fields):
    answer = asyncio.run(server.client.post(PATH, body(**fields)))
    assert answer.status == 200, answer.body
    return answer.json()


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", [byte_ids("ab")]),
        (["ab", "c"], [byte_ids("ab"), byte_ids("c")]),
        ([1, 2, 3], [[1, 2, 3]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        (["ab", [1]], [byte_ids("ab"), [1]]),
    ],
)
def test_prompt_forms(make_server, prompt, expected):
    server = make_server("xy")
    shown = post(server, prompt=prompt)
    assert [list(request.prompt_token_ids) for request in server.backend.requests] == expected
    assert [choice["text"] for choice in shown["choices"]] == ["xy"] * len(expected)
    assert [choice["index"] for choice in shown["choices"]] == list(range(len(expected)))
    assert shown["usage"]["prompt_tokens"] == sum(map(len, expected))
    _, streamed = asyncio.run(server.stream(PATH, body(prompt=prompt, stream_options={"include_usage": True})))
    assert {i: c.text for i, c in streamed.choices.items()} == {i: "xy" for i in range(len(expected))}
    assert streamed.usage == shown["usage"]


def test_special_spellings_in_a_prompt_are_tokens_unless_split(make_server):
    """A program wrote the prompt; it may hold a rendered template."""
    server = make_server()
    post(server, prompt="<|im_start|>a")
    post(server, prompt="<|im_start|>a", split_special_tokens=True)
    assert list(server.backend.requests[0].prompt_token_ids) == [START_ID, *byte_ids("a")]
    assert list(server.backend.requests[1].prompt_token_ids) == byte_ids("<|im_start|>a")


def test_the_start_token_of_the_model_is_put_first(make_server):
    server = make_server(codec=make_byte_codec(bos_token_id=START_ID))
    for fields in ({"prompt": "a"}, {"prompt": "<|im_start|>a"}, {"prompt": "a", "add_special_tokens": False}):
        post(server, **fields)
    assert [list(request.prompt_token_ids) for request in server.backend.requests] == [
        [START_ID, *byte_ids("a")], [START_ID, *byte_ids("a")], byte_ids("a")
    ]  # fmt: skip


def test_default_max_tokens_is_sixteen(make_server):
    server = make_server("x" * 40)
    answer = asyncio.run(server.client.post(PATH, {"prompt": "a"})).json()
    assert len(answer["choices"][0]["text"]) == 16


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=20),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.booleans(),
    st.none() | st.integers(0, 2),
)
def test_streamed_equals_whole(make_server, text, sizes, echo, logprobs):
    server = make_server(text_script(text, sizes=sizes))
    request = {"prompt": "Hé", "echo": echo, "logprobs": logprobs, "max_tokens": 100,
               "stream_options": {"include_usage": True}}  # fmt: skip
    _, streamed = asyncio.run(server.stream(PATH, body(**request)))
    del request["stream_options"]
    whole = post(server, **request)
    choice = whole["choices"][0]
    assert streamed.choices[0].text == choice["text"] == ("Hé" if echo else "") + text
    assert streamed.usage == whole["usage"]
    if logprobs is None:
        assert choice["logprobs"] is None
    else:
        assert {k: v for k, v in choice["logprobs"].items() if v} == {
            k: v for k, v in streamed.choices[0].completion_logprobs.items() if v
        }
        lengths = {len(choice["logprobs"][key]) for key in ("tokens", "token_logprobs", "text_offset")}
        assert lengths == {len(choice["text"].encode())}


def test_echo_with_logprobs_covers_the_prompt(make_server):
    shown = post(make_server("c"), prompt="ab", echo=True, logprobs=1)["choices"][0]
    assert shown["text"] == "abc"
    logprobs = shown["logprobs"]
    assert logprobs["tokens"] == ["a", "b", "c"]
    assert logprobs["text_offset"] == [0, 1, 2]
    assert logprobs["token_logprobs"][0] is None
    assert all(value is not None for value in logprobs["token_logprobs"][1:])


@pytest.mark.parametrize("logprobs", [None, 0, 2])
def test_echo_without_output(make_server, logprobs):
    server = make_server()
    shown = post(server, prompt="ab", echo=True, max_tokens=0, logprobs=logprobs)
    assert shown["choices"][0]["text"] == "ab"
    assert shown["choices"][0]["finish_reason"] == "length"
    assert shown["usage"]["completion_tokens"] == 0
    _, streamed = asyncio.run(server.stream(PATH, body(prompt="ab", echo=True, max_tokens=0, logprobs=logprobs)))
    assert streamed.choices[0].text == "ab"


def test_echo_of_ids_spells_them(make_server):
    assert (
        post(make_server("b"), prompt=[*byte_ids("é"), START_ID], echo=True)["choices"][0]["text"] == "é<|im_start|>b"
    )


def test_several_prompts_and_choices_are_grouped(make_server):
    server = make_server("x")
    shown = post(server, prompt=["a", "bb"], n=2)
    prompts = [bytes(request.prompt_token_ids).decode() for request in server.backend.requests]
    assert prompts == ["a", "a", "bb", "bb"]
    assert [choice["index"] for choice in shown["choices"]] == [0, 1, 2, 3]
    assert shown["usage"]["prompt_tokens"] == 3
    assert shown["usage"]["completion_tokens"] == 8


def test_token_ids_and_prompt_logprobs(make_server):
    shown = post(make_server("x"), prompt="ab", return_token_ids=True, prompt_logprobs=0)["choices"][0]
    assert shown["token_ids"] == byte_ids("x")
    assert shown["prompt_token_ids"] == byte_ids("ab")
    assert shown["prompt_logprobs"][0] is None
    assert str(ord("b")) in shown["prompt_logprobs"][1]


def test_a_stop_token_id(make_server):
    server = make_server("a.b")
    stop = [ord(".")]
    shown = post(server, stop_token_ids=stop)["choices"][0]
    assert (shown["text"], shown["finish_reason"], shown["stop_reason"]) == ("a", "stop", ord("."))
    shown = post(server, stop_token_ids=stop, include_stop_str_in_output=True)["choices"][0]
    assert shown["text"] == "a."


def test_ignore_eos_goes_on(make_server):
    server = make_server(lambda request: [byte_ids("a"), [EOS_ID], byte_ids("b")])
    assert post(server, ignore_eos=True)["choices"][0]["text"] == "ab"
    assert post(server)["choices"][0]["text"] == "a"
