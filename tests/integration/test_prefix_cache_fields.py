"""`cache_salt`, `cache_prompt`, `prompt_cache_retention` and `cached_tokens` over HTTP and the real engine."""

import asyncio
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
from deepinfer_api.testing.byte_codec import EOS_ID, VOCAB_SIZE, make_byte_codec

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
PROMPT = "p" * 200


@pytest.fixture
def make_client():
    engines = []

    def make(num_blocks=64, block_size=16):
        model = replace(make_scripted_model_config(vocab_size=VOCAB_SIZE), eos_token_ids=(EOS_ID,))
        executor = ScriptedExecutor(num_blocks=num_blocks, block_size=block_size, model_config=model)
        config = EngineConfig(
            model=".",
            cache=CacheConfig(block_size=block_size),
            scheduler=SchedulerConfig(max_num_seqs=4, max_num_batched_tokens=64),
        )
        engines.append(AsyncEngine(make_engine_core(config, executor, model_identity=b"t")))
        return AsgiClient(create_app(EngineBackend(engines[-1]), make_byte_codec(), ServerSettings(model_name="m")))

    yield make
    for engine in engines:
        engine.close()


def ask(client, prompt=PROMPT, path=COMPLETIONS, **fields):
    body = {"prompt": prompt} if path == COMPLETIONS else {"messages": [{"role": "user", "content": prompt}]}
    body |= {"max_tokens": 4, "temperature": 0, "ignore_eos": True}
    answer = asyncio.run(client.post(path, body | fields))
    assert answer.status == 200, answer.body
    assert "x-ignored-fields" not in answer.headers
    return answer.json()


def cached(client, **fields):
    return ask(client, **fields)["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_requests_share_only_with_their_own_salt(make_client, path):
    client = make_client()
    first = ask(client, path=path)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    num_prompt = first["usage"]["prompt_tokens"]
    for salt in ("tenant a", "tenant b"):
        assert cached(client, path=path, cache_salt=salt) == 0
        assert cached(client, path=path, cache_salt=salt) == num_prompt - 1
    assert cached(client, path=path) == num_prompt - 1
    assert ask(client, path=path)["choices"] == first["choices"]


def test_a_request_may_stay_out_of_the_cache(make_client):
    client = make_client()
    first = ask(client, cache_prompt=False)
    assert cached(client, cache_prompt=False) == 0
    assert cached(client) == 0, "it left nothing"
    assert cached(client, cache_prompt=True) == 199
    again = ask(client, cache_prompt=False)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, "and takes nothing"
    assert again["choices"] == first["choices"]


def test_retention_decides_who_leaves_first(make_client):
    client = make_client(num_blocks=32)
    cached(client, prompt="k" * 150, prompt_cache_retention="24h")
    cached(client, prompt="l" * 150, prompt_cache_retention="none")
    cached(client, prompt="m" * 150, prompt_cache_retention="in_memory")
    cached(client, prompt="n" * 150)
    assert cached(client, prompt="k" * 150) == 149
    assert cached(client, prompt="l" * 150) < 100


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt_cache_retention": "for ever"}, "prompt_cache_retention"),
        ({"prompt_cache_retention": 5}, "prompt_cache_retention"),
        ({"cache_prompt": "no"}, "cache_prompt"),
        ({"cache_salt": "x" * 1025}, "cache_salt"),
        ({"cache_salt": 1}, "cache_salt"),
    ],
)
def test_refusals(make_server, fields, param):
    for path, body in ((COMPLETIONS, {"prompt": "p"}), (CHAT, {"messages": [{"role": "user", "content": "p"}]})):
        answer = asyncio.run(make_server("x").client.post(path, body | fields))
        assert answer.status == 400
        assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("block_size", [16, 32, 64, 128])
def test_b39_short_prefixes_hit_at_the_second_request(make_client, block_size):
    """B39: a shared prefix of 2,000 tokens, and the shortest one of a single token, whatever the block size."""
    client = make_client(num_blocks=8192 // block_size, block_size=block_size)
    assert cached(client, prompt="s" * 2000 + "one") == 0
    assert cached(client, prompt="s" * 2000 + "two") == 2000
    assert cached(client, prompt="tail a") == 0
    assert cached(client, prompt="tx") == 1
