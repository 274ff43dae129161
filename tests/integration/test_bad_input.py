"""Whatever is wrong with a request: one clear sentence in OpenAI's shape, and the server goes on serving."""

import asyncio

import pytest

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
USER = {"role": "user", "content": "hi"}


def chat(**fields):
    return {"messages": [USER], **fields}


def completion(**fields):
    return {"prompt": "hi", **fields}


BAD = [
    (CHAT, chat(messages=[]), 400, "messages"),
    (CHAT, {}, 400, "messages"),
    (CHAT, b"{oops", 400, None),
    (CHAT, b"", 400, None),
    (CHAT, b"[1]", 400, None),
    (CHAT, b"\xff\xfe", 400, None),
    (CHAT, chat(messages=[{"role": "user", "content": "x" * 5000}]), 400, "messages"),
    (CHAT, chat(max_tokens=0), 400, "max_tokens"),
    (CHAT, chat(max_tokens=-1), 400, "max_tokens"),
    (CHAT, chat(top_p=0), 400, "top_p"),
    (CHAT, chat(top_p=2), 400, "top_p"),
    (CHAT, chat(temperature="hot"), 400, "temperature"),
    (CHAT, chat(min_p=2), 400, "min_p"),
    (CHAT, chat(repetition_penalty=0), 400, "repetition_penalty"),
    (CHAT, chat(frequency_penalty=3), 400, "frequency_penalty"),
    (CHAT, chat(seed=-1), 400, "seed"),
    (CHAT, chat(seed=2**64), 400, "seed"),
    (CHAT, chat(logit_bias={"999999": 1}), 400, "logit_bias.999999"),
    (CHAT, chat(logit_bias={"x": 1}), 400, "logit_bias.x"),
    (CHAT, chat(logit_bias={"5": 101}), 400, "logit_bias"),
    (CHAT, chat(min_tokens=9, max_tokens=3), 400, "min_tokens"),
    (CHAT, chat(max_completion_tokens=0), 400, "max_completion_tokens"),
    (CHAT, chat(max_completion_tokens=10**30, max_tokens=1), 400, "max_completion_tokens"),
    (COMPLETIONS, completion(max_completion_tokens=0), 400, "max_completion_tokens"),
    (CHAT, chat(repetition_penalty=1e-300), 400, "repetition_penalty"),
    (CHAT, chat(repetition_penalty=1e300), 400, "repetition_penalty"),
    (CHAT, chat(stop_token_ids=list(range(1025))), 400, "stop_token_ids"),
    (CHAT, chat(bad_words=["a"] * 129), 400, "bad_words"),
    (CHAT, chat(bad_words=["a", "b" * 257]), 400, "bad_words[1]"),
    (CHAT, chat(chat_template_kwargs={"messages": []}), 400, "chat_template_kwargs.messages"),
    (
        CHAT,
        b'{"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"a": [NaN]}}',
        400,
        "chat_template_kwargs",
    ),
    (CHAT, b'{"messages": [{"role": "user", "content": "x", "weight": 1e400}]}', 400, "messages"),
    (CHAT, chat(messages=[USER, {"role": "assistant", "content": " \n", "prefix": True}]), 400, "messages[1].content"),
    (COMPLETIONS, completion(prompt=["a"] * 9, n=128), 400, "prompt"),
    (CHAT, chat(model="m" * 100_000), 404, "model"),
    (CHAT, chat(model="gpt-17"), 404, "model"),
    (CHAT, chat(tools=[{"type": "function"}]), 400, "tools"),
    (CHAT, chat(response_format={"type": "json_schema"}), 400, "response_format.json_schema"),
    (CHAT, chat(stream=True, prompt_logprobs=1), 400, "prompt_logprobs"),
    (CHAT, chat(bad_words=[""]), 400, "bad_words[0]"),
    (COMPLETIONS, completion(prompt=""), 400, "prompt"),
    (COMPLETIONS, completion(prompt=["a", ""]), 400, "prompt[1]"),
    (COMPLETIONS, completion(prompt=[259]), 400, "prompt[0]"),
    (COMPLETIONS, completion(prompt=[[1], [2, -1]]), 400, "prompt[1][1]"),
    (COMPLETIONS, completion(prompt="x" * 5000), 400, "prompt"),
    (COMPLETIONS, completion(prompt=["x", "x" * 5000]), 400, "prompt[1]"),
    (COMPLETIONS, completion(max_tokens=0), 400, "max_tokens"),
    (COMPLETIONS, completion(suffix="x"), 400, "suffix"),
    (COMPLETIONS, completion(best_of=4), 400, "best_of"),
    (COMPLETIONS, completion(model="nope"), 404, "model"),
    ("/v1/tokenize", {}, 400, "prompt"),
    ("/v1/tokenize", {"prompt": "a", "messages": [USER]}, 400, "prompt"),
    ("/v1/detokenize", {"tokens": [1, 999]}, 400, "tokens[1]"),
    ("/v1/detokenize", {"tokens": "x"}, 400, "tokens"),
]


def check_error(answer, status, param):
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert error["param"] == param
    assert 0 < len(error["message"]) < 400
    assert answer.headers["x-request-id"] == answer.headers["request-id"]
    return error


@pytest.mark.parametrize("stream", [False, True])
def test_every_bad_request_is_refused_and_the_next_one_served(make_server, stream):
    server = make_server()

    async def run():
        for path, body, status, param in BAD:
            if isinstance(body, dict) and stream and "token" not in path:
                body = body | {"stream": True}
            check_error(await server.client.post(path, body), status, param)
        assert (await server.client.post(CHAT, chat())).status == 200

    asyncio.run(run())
    assert server.backend.active == {}
    assert len(server.app.state.services.running) == 0
    assert server.app.state.services.admission.num_in_flight == 0


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, chat(messages=[{"role": "user", "content": LONG}]), "messages"),
        (COMPLETIONS, completion(prompt=LONG), "prompt"),
    ],
)
def test_length_errors_carry_both_numbers(make_server, path, body, param):
    error = check_error(asyncio.run(make_server().client.post(path, body)), 400, param)
    assert error["n_prompt_tokens"] >= 5000
    assert error["n_ctx"] == 4096
    assert error["code"] == "context_length_exceeded"


def test_a_prompt_that_just_fits_is_served(make_server):
    server = make_server("abc")
    fits = asyncio.run(server.client.post(COMPLETIONS, completion(prompt="x" * 4095)))
    assert fits.json()["choices"][0]["finish_reason"] == "length"
    check_error(asyncio.run(server.client.post(COMPLETIONS, completion(prompt="x" * 4096))), 400, "prompt")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/v1/nothing", 404),
        ("GET", CHAT, 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/metrics", 405),
        ("GET", "/v1/models/unknown/model", 404),
        ("GET", "/static/nothing.js", 404),
        ("GET", "/static/../settings.py", 404),
    ],
)
def test_routes_that_are_not_there(make_server, method, path, status):
    answer = asyncio.run(make_server().client.request(method, path))
    assert answer.status == status
    assert answer.json()["error"]["message"]
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize("announced", [True, False])
def test_large_bodies_are_413(make_server, announced):
    server = make_server(max_body_bytes=1000)
    data = b'{"prompt": "' + b"x" * 1000 + b'"}'
    chunks = None if announced else [data[:600], data[600:]]
    answer = asyncio.run(server.client.request("POST", COMPLETIONS, body=data, body_chunks=chunks))
    error = check_error(answer, 413, None)
    assert "1000 bytes" in error["message"]
    assert asyncio.run(server.client.post(COMPLETIONS, completion())).status == 200


def test_never_a_422(make_server):
    server = make_server()

    async def run():
        return [(await server.client.post(path, body)).status for path, body, _, _ in BAD]

    assert 422 not in asyncio.run(run())


def test_the_client_leaves_while_sending_its_body(make_server):
    server = make_server()

    async def run():
        scope_client = server.client
        return await scope_client.request("POST", CHAT, body_chunks=[], leave_at_once=True)

    answer = asyncio.run(run())
    assert answer.status in (0, 499)
    assert server.backend.requests == []
