"""The server over the real engine: scheduler, KV blocks and threads are real; the model is a function of its ids."""

import asyncio

import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.async_engine import AsyncEngine
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer_api.app import create_app
from deepinfer_api.backends.engine import EngineBackend
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.asgi import AsgiClient
from deepinfer_api.testing.byte_codec import VOCAB_SIZE, make_byte_codec
from deepinfer_api.testing.stream_rules import check_stream

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
NUM_BLOCKS, BLOCK_SIZE = 64, 16
CODEC = make_byte_codec()


def letters(tokens, params):
    """Lower-case letters that depend on everything before."""
    return 97 + (sum(tokens) * 31 + len(tokens) * 7) % 26


class EngineServer:
    def __init__(self, *, choose_token=letters, num_blocks=NUM_BLOCKS, scheduler=None, **settings):
        model = make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=1024)
        executor = ScriptedExecutor(
            num_blocks=num_blocks, block_size=BLOCK_SIZE, model_config=model, choose_token=choose_token
        )
        config = EngineConfig(
            model=".", cache=CacheConfig(block_size=BLOCK_SIZE),
            scheduler=scheduler or SchedulerConfig(max_num_seqs=8, max_num_batched_tokens=64),
        )  # fmt: skip
        self.core = make_engine_core(config, executor, model_identity=b"test")
        self.engine = AsyncEngine(self.core)
        self.backend = EngineBackend(self.engine)
        self.app = create_app(self.backend, CODEC, ServerSettings(model_name="m", **settings))
        self.client = AsgiClient(self.app)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.engine.close()

    async def text(self, body, path=COMPLETIONS):
        answer = await self.client.post(path, body)
        assert answer.status == 200, answer.body
        return answer.json()

    async def idle(self):
        """Wait until the engine holds nothing."""
        for _ in range(1000):
            if not self.engine.num_unfinished_requests and not self.core.has_work:
                return
            await asyncio.sleep(0.005)
        raise AssertionError("the engine did not become idle")

    @property
    def num_used_blocks(self):
        pool = self.core.scheduler.cache.pool
        return pool.num_blocks - pool.num_available


def test_streamed_equals_whole_and_repeats_hit_the_cache():
    async def run(server):
        body = {"prompt": "x" * 100, "max_tokens": 30, "temperature": 0}
        first, second = await server.text(body), await server.text(body)
        raw = await server.client.post(COMPLETIONS, body | {"stream": True, "stream_options": {"include_usage": True}})
        streamed = check_stream(raw.writes, raw.headers, is_chat=False, include_usage=True)
        await server.idle()
        return first, second, streamed

    with EngineServer() as server:
        first, second, streamed = asyncio.run(run(server))
        assert first["choices"][0]["text"] == second["choices"][0]["text"] == streamed.choices[0].text
        assert len(streamed.choices[0].text) == 30
        cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in (first["usage"], second["usage"])]
        assert cached == [0, 99]
        assert second["timings"]["prompt_n"] == 1
        assert server.num_used_blocks == 0


def test_many_at_once_are_each_right():
    async def run(server):
        bodies = [{"prompt": f"prompt {i}", "max_tokens": 5 + i % 7, "temperature": 0} for i in range(40)]
        together = await asyncio.gather(*(server.text(body) for body in bodies))
        alone = [await server.text(body) for body in bodies]
        return [[shown["choices"][0]["text"] for shown in group] for group in (together, alone)]

    with EngineServer() as server:
        together, alone = asyncio.run(run(server))
        assert together == alone


def test_leaving_gives_all_blocks_back_and_keeps_the_prefix():
    """B23 and B34 at this layer: clients leave at any moment, streamed or not, n = 2; the follow-up hits the cache."""

    async def leave(server, number):
        kind = number % 4
        path, body = COMPLETIONS, {"prompt": "shared " * 20 + str(number), "max_tokens": 300, "n": 1 + number % 2}
        await server.client.request(
            "POST", path, body=body | {"stream": kind != 3}, leave_at_once=kind in (0, 3),
            leave_after_writes=(None, 1, 5, None)[kind],
        )  # fmt: skip

    async def run(server):
        for start in range(0, 60, 12):
            await asyncio.gather(*(leave(server, number) for number in range(start, start + 12)))
        await server.idle()
        assert server.num_used_blocks == 0
        assert len(server.app.state.services.running) == 0
        follow_up = await server.text({"prompt": "shared " * 20 + "end", "max_tokens": 8, "temperature": 0})
        await server.idle()
        return follow_up

    with EngineServer() as server:
        follow_up = asyncio.run(run(server))
        assert server.num_used_blocks == 0
        ends = server.app.state.services.metrics.request_success
        assert sum(ends.values()) == 91
        # A few may be complete before the client has taken what it wanted.
        assert ends["abort"] > 60
        assert follow_up["usage"]["prompt_tokens_details"]["cached_tokens"] > 100
        with EngineServer() as fresh:
            alone = asyncio.run(fresh.text({"prompt": "shared " * 20 + "end", "max_tokens": 8, "temperature": 0}))
        assert follow_up["choices"][0]["text"] == alone["choices"][0]["text"]


def test_a_stop_string_ends_the_request_in_the_engine():
    async def run(server):
        whole = (await server.text({"prompt": "p", "max_tokens": 50, "temperature": 0}))["choices"][0]["text"]
        stop = whole[20:23]
        cut = await server.text({"prompt": "p", "max_tokens": 50, "temperature": 0, "stop": stop})
        await server.idle()
        return whole, stop, cut

    with EngineServer() as server:
        whole, stop, cut = asyncio.run(run(server))
        assert cut["choices"][0]["text"] == whole[: whole.index(stop)]
        assert cut["usage"]["completion_tokens"] == whole.index(stop) + len(stop)
        assert server.num_used_blocks == 0


def test_a_full_queue_is_429_and_the_others_finish():
    async def run(server):
        body = {"prompt": "p", "max_tokens": 200, "temperature": 0}
        return await asyncio.gather(*(server.client.post(COMPLETIONS, body) for _ in range(6)))

    scheduler = SchedulerConfig(max_num_seqs=2, max_num_batched_tokens=64, max_num_waiting=2)
    with EngineServer(scheduler=scheduler) as server:
        answers = asyncio.run(run(server))
        statuses = sorted(answer.status for answer in answers)
        assert statuses == [200, 200, 200, 200, 429, 429]
        refused = next(answer for answer in answers if answer.status == 429)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert server.app.state.services.metrics.admission_rejections == {"engine_queue": 2}


def test_a_failed_step_of_the_model_ends_liveness_with_a_status():
    def broken(tokens, params):
        raise ZeroDivisionError("the model is broken")

    async def run(server):
        answer = await server.client.post(COMPLETIONS, {"prompt": "p"})
        health, ready = await server.client.get("/health"), await server.client.get("/ready")
        later = await server.client.post(COMPLETIONS, {"prompt": "p"})
        return [each.status for each in (answer, health, ready, later)]

    with EngineServer(choose_token=broken) as server:
        assert asyncio.run(run(server)) == [503, 503, 503, 503]


def test_one_bad_row_fails_alone():
    from deepinfer.errors import RequestError

    def choose(tokens, params):
        if tokens[0] == ord("!"):
            raise RequestError("logits are not finite")
        return letters(tokens, params)

    async def run(server):
        bodies = [{"prompt": "!" if i == 1 else "p", "max_tokens": 20, "temperature": 0} for i in range(4)]
        return await asyncio.gather(*(server.client.post(COMPLETIONS, body) for body in bodies))

    with EngineServer(choose_token=choose) as server:
        answers = asyncio.run(run(server))
        assert [answer.status for answer in answers] == [200, 500, 200, 200]
        assert "not finite" in answers[1].json()["error"]["message"]


@pytest.mark.parametrize("length", [1023, 1024, 5000])
def test_the_context_is_the_engines(length):
    with EngineServer() as server:
        answer = asyncio.run(server.client.post(COMPLETIONS, {"prompt": "x" * length, "max_tokens": 5}))
        if length == 1023:
            assert answer.json()["choices"][0]["finish_reason"] == "length"
            assert answer.json()["usage"]["completion_tokens"] == 1
        else:
            assert answer.status == 400
            error = answer.json()["error"]
            assert (error["n_prompt_tokens"], error["n_ctx"]) == (length, 1024)


def test_metrics_see_the_engine():
    async def run(server):
        await server.text({"prompt": "x" * 100, "max_tokens": 10})
        return (await server.client.get("/metrics")).body.decode()

    with EngineServer() as server:
        text = asyncio.run(run(server))
        metrics = server.app.state.services.metrics
        assert sum(sum(h.counts) for h in metrics.step_duration.values()) >= 10
        assert metrics.num_prefix_cache_queries > 0
        assert "deepinfer:request_queue_time_seconds_count" in text
