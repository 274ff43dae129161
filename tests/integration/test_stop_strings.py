"""B20: nothing of a stop string is visible, nothing else is lost, counts and logprobs fit, whatever the steps."""

import asyncio

import pytest

from deepinfer_api.testing.scripts import text_script

PATH = "/v1/completions"

CASES = [
    (["DEFGHIJ"], "ABC DEF GHI J", "ABC DEF GHI J", None),
    (["DEFGHIJ"], "ABC DEFGHIJ KLM", "ABC ", "DEFGHIJ"),
    (["own fox"], "The quick brown fox jumps", "The quick br", "own fox"),
    (["\nUser:"], "Fine.\nUser: and", "Fine.", "\nUser:"),
    (["\nUser:"], "Fine.\nUse", "Fine.\nUse", None),
    (["</code>"], "x = 1</code> y", "x = 1", "</code>"),
    (["</code>"], "x = 1</cod", "x = 1</cod", None),
    (["</th"], "a</think>b", "a", "</th"),
    (["abcd", "bc"], "xabcd", "xa", "bc"),
    (["abcd", "cd"], "xabcd", "x", "abcd"),
    (["aab"], "aaaab", "aa", "aab"),
    (["end"], "the end", "the ", "end"),
    (["漢字"], "a漢字b", "a", "漢字"),
    (["漢字"], "a漢b", "a漢b", None),
    (["🌍"], "hi 🌍!", "hi ", "🌍"),
    (["a"], "aaa", "", "a"),
]


@pytest.mark.parametrize(("stop", "text", "visible", "found"), CASES)
@pytest.mark.parametrize("sizes", [(1,), (2,), (3, 1), (100,)])
def test_stop(make_server, stop, text, visible, found, sizes):
    server = make_server(text_script(text, sizes=sizes))
    request = {"prompt": "p", "max_tokens": 100, "stop": stop, "logprobs": 0}
    whole = asyncio.run(server.client.post(PATH, request)).json()
    _, streamed = asyncio.run(server.stream(PATH, request))
    choice = whole["choices"][0]
    assert streamed.choices[0].text == choice["text"] == visible
    assert streamed.choices[0].stop_reason == choice["stop_reason"]
    assert choice["finish_reason"] == "stop"
    if found is not None:
        assert choice["stop_reason"] == found
        until_stop = text[: len(visible) + len(found)]
        assert whole["usage"]["completion_tokens"] == len(until_stop.encode())
        assert len(server.backend.aborted) in (0, 2)
    # Tokens of the text and their log probabilities are one to one; none shows before its text.
    assert len(choice["logprobs"]["tokens"]) == len(visible.encode())
    assert streamed.choices[0].completion_logprobs.get("tokens", []) == choice["logprobs"]["tokens"]


def test_the_engine_is_told_at_once(make_server):
    server = make_server("abSTOP" + "x" * 1000)
    asyncio.run(server.client.post(PATH, {"prompt": "p", "max_tokens": 2000, "stop": "STOP"}))
    assert len(server.backend.aborted) == 1
    assert server.backend.active == {}


def test_the_stop_string_shows_where_asked(make_server):
    server = make_server("abSTOPcd")
    answer = asyncio.run(server.client.post(PATH, {"prompt": "p", "stop": "STOP", "include_stop_str_in_output": True}))
    assert answer.json()["choices"][0]["text"] == "abSTOP"


def test_text_is_held_back_no_longer_than_needed(make_server):
    """At most the longest proper prefix of a stop string waits."""
    server = make_server("abcdefSTOXgh")
    raw, streamed = asyncio.run(server.stream(PATH, {"prompt": "p", "max_tokens": 50, "stop": ["STOP"]}))
    pieces = [write.split(b'"text":"')[1].split(b'"')[0].decode() for write in raw.writes[:-2] if b'"text":"' in write]
    assert pieces[:6] == list("abcdef")
    assert "STOX" in pieces
    assert streamed.choices[0].text == "abcdefSTOXgh"


def test_choices_stop_apart(make_server):
    def script(request):
        text = "aXb" if request.request_id.endswith("-0") else "long text X end"
        return text_script(text)(request)

    server = make_server(script)
    body = {"messages": [{"role": "user", "content": "q"}], "n": 2, "stop": "X"}
    _, streamed = asyncio.run(server.stream("/v1/chat/completions", body))
    assert {i: c.text for i, c in streamed.choices.items()} == {0: "a", 1: "long text "}
