"""The `openai` package over a real socket: streaming and not give the same, errors are its own classes."""

import pytest

from deepinfer_api.testing.byte_codec import byte_ids
from deepinfer_api.testing.loopback import serve_on_loopback

openai = pytest.importorskip("openai", reason="the openai package is not installed")

TEXT = "Grüße, 世界 🌍!\u2028Done."
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
def client(make_server):
    server = make_server(TEXT, api_keys=("test-key",), backend={"num_cached_tokens": 3})
    with serve_on_loopback(server.app) as running:
        sdk = openai.OpenAI(base_url=f"{running.url}/v1", api_key="test-key", max_retries=0)
        yield sdk
        sdk.close()


def test_chat_streams_what_it_answers(client):
    whole = client.chat.completions.create(model="m", messages=MESSAGES)
    with client.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content == TEXT
    assert chunks[-1].usage == whole.usage
    assert whole.usage.prompt_tokens_details.cached_tokens == 3
    assert whole._request_id
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_the_sdk_accumulates_the_stream(client):
    with client.chat.completions.stream(
        model="m", messages=MESSAGES, n=2, logprobs=True, top_logprobs=1, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    whole = client.chat.completions.create(model="m", messages=MESSAGES, n=2, logprobs=True, top_logprobs=1)
    for streamed, plain in zip(final.choices, whole.choices, strict=True):
        assert streamed.message.content == plain.message.content == TEXT
        assert streamed.finish_reason == plain.finish_reason == "stop"
        assert streamed.logprobs.content == plain.logprobs.content
    assert final.usage == whole.usage


def test_completions(client):
    whole = client.completions.create(model="m", prompt=byte_ids("a"), echo=True, logprobs=1, max_tokens=100)
    with client.completions.create(model="m", prompt="a", echo=True, logprobs=1, max_tokens=100, stream=True) as stream:
        text = "".join(chunk.choices[0].text for chunk in stream)
    assert text == whole.choices[0].text == "a" + TEXT
    assert len(whole.choices[0].logprobs.tokens) == len(byte_ids("a" + TEXT))


def test_models(client):
    assert [model.id for model in client.models.list()] == ["m"]
    assert client.models.retrieve("m").id == "m"


def test_errors_are_typed(client):
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="m", messages=[])
    assert bad.value.param == "messages"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="other", messages=MESSAGES)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="m", prompt="x" * 5000)
    assert long.value.code == "context_length_exceeded"


def test_a_failure_in_the_stream_raises(make_server):
    def script(request):
        yield byte_ids("a")
        yield RuntimeError("broken")

    with serve_on_loopback(make_server(script).app) as running:
        sdk = openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0)
        with pytest.raises(openai.APIError, match="failed while answering"):
            list(sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        sdk.close()
