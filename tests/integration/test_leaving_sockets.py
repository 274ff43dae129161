"""B23 and B34 on real sockets: clients that close or reset their connection, at any moment, streamed or not."""

import asyncio
import json
import socket
import struct
import time
from dataclasses import replace

import httpx
import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.async_engine import AsyncEngine
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer_api.app import create_app
from deepinfer_api.backends.engine import EngineBackend
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.byte_codec import EOS_ID, VOCAB_SIZE, make_byte_codec
from deepinfer_api.testing.loopback import serve_on_loopback

STEP_SECONDS, CHUNK = 0.004, 16
LONG = "long " * 700  # 3,500 tokens: 219 steps, most of a second


class SlowExecutor(ScriptedExecutor):
    """A step takes some time."""

    def execute(self, plan):
        time.sleep(STEP_SECONDS)
        return super().execute(plan)


@pytest.fixture
def server():
    model = replace(
        make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=4096), eos_token_ids=(EOS_ID,)
    )
    executor = SlowExecutor(num_blocks=600, block_size=16, model_config=model)
    config = EngineConfig(
        model=".",
        cache=CacheConfig(block_size=16),
        scheduler=SchedulerConfig(max_num_seqs=4, max_num_batched_tokens=CHUNK, target_itl_seconds=None),
    )
    core = make_engine_core(config, executor, model_identity=b"test")
    with AsyncEngine(core) as engine:
        app = create_app(EngineBackend(engine), make_byte_codec(), ServerSettings(model_name="m"))
        with serve_on_loopback(app) as running, httpx.Client(base_url=running.url, timeout=50) as client:
            yield Server(app, core, engine, client, running.url)


class Server:
    def __init__(self, app, core, engine, client, url):
        self.app, self.core, self.engine, self.client = app, core, engine, client
        host, _, port = url.removeprefix("http://").partition(":")
        self.address = (host, int(port))

    def leave(self, body, *, after_seconds, resets):
        """Send a request on a socket of its own and go away."""
        data = json.dumps(body).encode()
        with socket.create_connection(self.address, timeout=10) as connection:
            head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            time.sleep(after_seconds)
            if resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def wait_until_idle(self, seconds):
        """Until the engine holds nothing."""
        begin = time.monotonic()
        while self.engine.num_unfinished_requests or self.core.has_work:
            assert time.monotonic() - begin < seconds, "the engine goes on for nobody"
            time.sleep(0.002)

    def ask(self, prompt, **fields):
        answer = self.client.post(
            "/v1/completions", json={"prompt": prompt, "max_tokens": 4, "temperature": 0, **fields}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def num_used_blocks(self):
        pool = self.core.scheduler.cache.pool
        return pool.num_blocks - pool.num_available


@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("stream", [True, False])
def test_leaving_during_prefill_ends_it_and_keeps_what_is_computed(server, stream, resets):
    server.leave({"prompt": LONG, "stream": stream, "max_tokens": 100}, after_seconds=0.25, resets=resets)
    server.wait_until_idle(10.0)
    assert server.num_used_blocks == 0
    again = server.ask(LONG)
    num_cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert CHUNK <= num_cached < len(LONG) - 1
    assert again["choices"] == server.ask(LONG, cache_prompt=False)["choices"]
    assert server.app.state.services.metrics.request_success["abort"] == 1


@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
def test_leaving_in_the_queue(server, resets):
    async def run():
        blockers = [
            asyncio.to_thread(server.ask, f"{number}" * 20, max_tokens=150, ignore_eos=True) for number in range(4)
        ]
        tasks = [asyncio.ensure_future(blocker) for blocker in blockers]
        await asyncio.sleep(0.2)
        await asyncio.gather(
            *(
                asyncio.to_thread(
                    server.leave, {"prompt": LONG + str(i), "stream": i % 2 == 0}, after_seconds=0.1, resets=resets
                )
                for i in range(6)
            )
        )
        begin = time.monotonic()
        while server.engine.num_unfinished_requests > 4:
            assert time.monotonic() - begin < 10.0
            await asyncio.sleep(0.005)
        return await asyncio.gather(*tasks)

    answers = asyncio.run(run())
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [150] * 4
    server.wait_until_idle(5.0)
    assert server.num_used_blocks == 0


def test_two_hundred_clients_leave_at_all_moments(server):
    """B23: before the first byte, after some deltas, in mid-prefill; one output and two; then somebody stays."""

    async def run():
        async def one(number):
            body = {
                "prompt": "shared " * 10 + "x" * (number % 7 * 30), "max_tokens": 40, "stream": number % 3 != 0,
                "n": 1 + number % 2, "ignore_eos": True,
            }  # fmt: skip
            delay = (0.0, 0.02, 0.1, 0.3)[number % 4]
            await asyncio.to_thread(server.leave, body, after_seconds=delay, resets=number % 5 == 0)

        for start in range(0, 200, 8):
            await asyncio.gather(*(one(number) for number in range(start, start + 8)))

    asyncio.run(run())
    server.wait_until_idle(10.0)
    assert server.num_used_blocks == 0
    services = server.app.state.services
    assert len(services.running) == 0
    assert services.admission.num_in_flight == 0
    assert sum(services.metrics.request_errors.values()) == 0
    assert services.metrics.request_success["abort"] > 100
    follow_up = server.ask("shared " * 10 + "end", max_tokens=8)
    assert follow_up["usage"]["prompt_tokens_details"]["cached_tokens"] >= 64
    alone = server.ask("shared " * 10 + "end", max_tokens=8, cache_prompt=False)
    assert follow_up["choices"] == alone["choices"]
