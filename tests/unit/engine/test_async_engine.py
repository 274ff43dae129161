import asyncio
import dataclasses
import threading
import time

import pytest

from deepinfer import (
    AsyncEngine,
    CapacityError,
    EngineDeadError,
    FinishReason,
    QueueFullError,
    RequestError,
    SamplingParams,
)
from deepinfer.executor.scripted import ScriptedExecutor

GREEDY = SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True)
LONG = SamplingParams(temperature=0.0, max_tokens=200, ignore_eos=True)


class SlowExecutor(ScriptedExecutor):
    def execute(self, plan):
        time.sleep(0.002)
        return super().execute(plan)


class BlockedExecutor(ScriptedExecutor):
    """Waits in its first step until it is let go."""

    def __init__(self, **options):
        super().__init__(**options)
        self.gate = threading.Event()

    def execute(self, plan):
        assert self.gate.wait(30)
        return super().execute(plan)


class FailingExecutor(BlockedExecutor):
    num_steps = 0

    def execute(self, plan):
        self.num_steps += 1
        if self.num_steps == 5:
            raise MemoryError("no more pages")
        return super().execute(plan)


async def collect(stream):
    token_ids, last = [], None
    async for output in stream:
        token_ids += output.new_token_ids
        last = output
    return token_ids, last


def test_concurrent_requests_get_what_they_would_get_alone(make_core):
    core = make_core()
    prompts = {f"r{number}": [number % 7] * (1 + 5 * number) for number in range(20)}

    async def main(engine):
        results = await asyncio.gather(
            *(collect(engine.add_request(name, prompt, GREEDY)) for name, prompt in prompts.items())
        )
        for prompt, (token_ids, last) in zip(prompts.values(), results, strict=True):
            assert token_ids == core.executor.predict(prompt, GREEDY)
            assert last.finish_reason is FinishReason.LENGTH
            assert last.stats.num_output_tokens == 20

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))
        assert engine.num_unfinished_requests == 0
    assert core.scheduler.cache.num_available_blocks == 64


def test_bad_requests_raise_at_the_call_and_harm_nobody(make_core):
    core = make_core(executor_type=BlockedExecutor)

    async def main(engine):
        good = engine.add_request("good", [1, 2], GREEDY)
        with pytest.raises(RequestError, match="prompt is empty"):
            engine.add_request("bad", [], GREEDY)
        with pytest.raises(RequestError, match="'good' is in use"):
            engine.add_request("good", [1], GREEDY)
        core.executor.gate.set()
        assert len((await collect(good))[0]) == 20
        assert len((await collect(engine.add_request("good", [1], GREEDY)))[0]) == 20

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))


def test_what_the_scheduler_refuses_ends_that_request_alone(make_core):
    core = make_core(num_blocks=4, block_size=16)
    core.rules = dataclasses.replace(core.rules, max_model_len=1000)  # more than the blocks hold

    async def run():
        with AsyncEngine(core) as engine:
            good = engine.add_request("good", [1], GREEDY)
            bad = engine.add_request("bad", [1], LONG)
            _, last = await collect(bad)
            assert (last.finish_reason, last.is_refused) == (FinishReason.ERROR, True)
            assert "KV blocks" in last.error_message
            assert len((await collect(good))[0]) == 20
            assert len((await collect(engine.add_request("bad", [1], GREEDY)))[0]) == 20

    asyncio.run(run())


def test_a_full_queue_says_when_to_come_back(make_core):
    core = make_core(max_num_seqs=1, max_num_waiting=2, executor_type=BlockedExecutor)

    async def main(engine):
        streams = [engine.add_request(f"r{number}", [1], GREEDY) for number in range(3)]
        with pytest.raises(QueueFullError, match="3 requests") as caught:
            engine.add_request("late", [1], GREEDY)
        assert caught.value.retry_after_seconds >= 1
        core.executor.gate.set()
        for stream in streams:
            await collect(stream)
        await collect(engine.add_request("late", [1], GREEDY))

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))


@pytest.mark.parametrize("num_outputs", [0, 1, 3])
def test_abort_ends_the_stream_and_gives_back_blocks(make_core, num_outputs):
    core = make_core(executor_type=SlowExecutor)

    async def main(engine):
        stream = engine.add_request("a", [1] * 30, LONG)
        for _ in range(num_outputs):
            await anext(stream)
        engine.abort("a")
        engine.abort("a")
        engine.abort("unknown")
        _, last = await collect(stream)
        assert last.finish_reason is FinishReason.ABORT
        engine.abort("a")
        assert len((await collect(engine.add_request("b", [1], GREEDY)))[0]) == 20

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))
    assert core.scheduler.cache.num_available_blocks == 64


def test_closing_a_stream_aborts_but_cancelling_a_wait_does_not(make_core):
    core = make_core(executor_type=BlockedExecutor)

    async def main(engine):
        stream = engine.add_request("a", [1] * 30, LONG)
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 1e-4)
        core.executor.gate.set()
        assert len((await anext(stream)).new_token_ids) >= 1
        await stream.aclose()
        await stream.aclose()
        await collect(stream)
        while engine.num_unfinished_requests:
            await asyncio.sleep(0.001)

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))
    assert core.scheduler.cache.num_available_blocks == 64


def test_outputs_of_a_slow_reader_are_merged_without_loss(make_core):
    core = make_core()

    async def main(engine):
        stream = engine.add_request("a", [1, 2, 3], LONG)
        num_outputs, token_ids = 0, []
        async for output in stream:
            num_outputs += 1
            token_ids += output.new_token_ids
            await asyncio.sleep(0.02)
        assert token_ids == core.executor.predict([1, 2, 3], LONG)
        assert num_outputs < 100

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))


def test_a_dead_loop_is_told_to_everyone(make_core, caplog):
    core = make_core(executor_type=FailingExecutor, max_num_seqs=1)

    async def main(engine):
        streams = [engine.add_request(f"r{number}", [number], LONG) for number in range(3)]
        core.executor.gate.set()
        for stream in streams:
            with pytest.raises(EngineDeadError, match="MemoryError: no more pages"):
                await collect(stream)
        assert engine.is_dead
        with pytest.raises(EngineDeadError) as caught:
            engine.add_request("late", [1], GREEDY)
        assert isinstance(caught.value.cause, MemoryError)
        engine.abort("r0")
        assert await engine.drain(1.0)

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))
    assert "the engine loop ended" in caplog.text


def test_requests_from_two_event_loops(make_core):
    core = make_core()
    results = {}

    def client(engine, name):
        async def main():
            outputs = await asyncio.gather(
                *(collect(engine.add_request(f"{name}{number}", [number], GREEDY)) for number in range(10))
            )
            results[name] = [token_ids for token_ids, _ in outputs]

        asyncio.run(main())

    with AsyncEngine(core) as engine:
        threads = [threading.Thread(target=client, args=(engine, name)) for name in "xy"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results["x"] == results["y"] == [core.executor.predict([number], GREEDY) for number in range(10)]


def test_a_reader_whose_loop_is_gone_does_not_stop_the_others(make_core):
    core = make_core(executor_type=SlowExecutor)

    async def leave(engine):
        engine.add_request("left", [1], LONG)
        await asyncio.sleep(0.01)

    async def stay(engine):
        assert len((await collect(engine.add_request("stays", [1], GREEDY)))[0]) == 20
        while engine.num_unfinished_requests:
            await asyncio.sleep(0.001)

    with AsyncEngine(core) as engine:
        asyncio.run(leave(engine))
        asyncio.run(stay(engine))
    assert core.scheduler.cache.num_available_blocks == 64


def test_drain_lets_requests_end(make_core):
    async def main(engine):
        stream = engine.add_request("a", [1], GREEDY)
        draining = asyncio.create_task(engine.drain(30.0))
        await asyncio.sleep(0)
        with pytest.raises(CapacityError, match="shutting down"):
            engine.add_request("b", [1], GREEDY)
        assert len((await collect(stream))[0]) == 20
        assert await draining is True

    with AsyncEngine(make_core(executor_type=SlowExecutor)) as engine:
        asyncio.run(main(engine))


def test_drain_aborts_what_does_not_end_in_time(make_core):
    core = make_core(executor_type=SlowExecutor)

    async def main(engine):
        stream = engine.add_request("a", [1], LONG)
        assert await engine.drain(0.03) is False
        _, last = await collect(stream)
        assert last.finish_reason is FinishReason.ABORT

    with AsyncEngine(core) as engine:
        asyncio.run(main(engine))


def test_close_ends_waiting_streams(make_core):
    async def main(engine):
        stream = engine.add_request("a", [1], LONG)
        await anext(stream)
        await asyncio.to_thread(engine.close)
        with pytest.raises(EngineDeadError, match="closed"):
            await collect(stream)

    asyncio.run(main(AsyncEngine(make_core(executor_type=SlowExecutor))))


def test_step_listeners_see_every_step_and_may_fail(make_core, caplog):
    seen = []

    def broken(stats):
        raise ValueError("listener")

    async def main(engine):
        engine.add_step_listener(broken)
        engine.add_step_listener(seen.append)
        await collect(engine.add_request("a", [1] * 30, GREEDY))
        await collect(engine.add_request("b", [1] * 30, GREEDY))

    with AsyncEngine(make_core()) as engine:
        asyncio.run(main(engine))
    assert sum(stats.num_prefill_tokens for stats in seen) == 30 + 1
    assert sum(stats.num_decode_tokens for stats in seen) == 2 * 19
    assert sum(stats.num_prefix_cache_hits for stats in seen) == 29
    assert caplog.text.count("a step listener failed") == 1


def test_an_idle_engine_uses_no_processor_time(make_core):
    async def main(engine):
        await collect(engine.add_request("a", [1], GREEDY))
        start = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - start < 0.1

    with AsyncEngine(make_core()) as engine:
        asyncio.run(main(engine))


def test_one_wake_up_of_the_loop_per_step(make_core):
    core = make_core(executor_type=SlowExecutor, max_num_seqs=8)

    async def main(engine):
        loop = asyncio.get_running_loop()
        num_wakes = 0
        original = loop.call_soon_threadsafe

        def count(callback, *args, **kwargs):
            nonlocal num_wakes
            num_wakes += 1
            return original(callback, *args, **kwargs)

        loop.call_soon_threadsafe = count
        streams = [engine.add_request(f"r{number}", [number], GREEDY) for number in range(8)]
        await asyncio.gather(*(collect(stream) for stream in streams))
        return num_wakes

    steps = []
    with AsyncEngine(core) as engine:
        engine.add_step_listener(steps.append)
        num_wakes = asyncio.run(main(engine))
    assert num_wakes <= len(steps)
    assert len(steps) < 40
