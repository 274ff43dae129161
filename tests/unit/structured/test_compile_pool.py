"""Grammars are compiled elsewhere: the event loop goes on, equal ones share the work, what takes long is given up."""

import asyncio
import threading
import time

import pytest

from deepinfer.errors import GrammarError, QueueFullError
from deepinfer.structured import CompilePool, GrammarSpec


class SlowCompiler:
    """Compiles when it is told to."""

    def __init__(self):
        self.go = threading.Event()
        self.num_compiled = 0
        self.known = {}

    def find(self, spec):
        return self.known.get(spec)

    def compile(self, spec):
        self.go.wait(20)
        self.num_compiled += 1
        if spec.source == "bad":
            raise GrammarError("regex", "is bad")
        self.known[spec] = object()
        return self.known[spec]


@pytest.fixture
def slow():
    compiler = SlowCompiler()
    yield compiler
    compiler.go.set()


def test_equal_specifications_share_the_work_and_the_loop_goes_on(slow):
    async def run():
        pool = CompilePool(slow)
        tasks = [asyncio.create_task(pool.compile(GrammarSpec("regex", "a"))) for _ in range(5)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in tasks)
        slow.go.set()
        grammars = await asyncio.gather(*tasks)
        assert await pool.compile(GrammarSpec("regex", "a")) is grammars[0]
        pool.close()
        return grammars

    assert len(set(asyncio.run(run()))) == 1
    assert slow.num_compiled == 1


def test_a_failure_reaches_everyone_who_asked_and_is_forgotten(slow):
    async def run():
        pool = CompilePool(slow)
        slow.go.set()
        spec = GrammarSpec("regex", "bad")
        failures = await asyncio.gather(*(pool.compile(spec) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(failure, GrammarError) for failure in failures)
        assert not pool._pending
        pool.close()

    asyncio.run(run())


def test_who_gives_up_cancels_nobody_else(slow):
    async def run():
        pool = CompilePool(slow)
        spec = GrammarSpec("regex", "a")
        leaves, stays = asyncio.create_task(pool.compile(spec)), asyncio.create_task(pool.compile(spec))
        await asyncio.sleep(0.01)
        leaves.cancel()
        await asyncio.sleep(0.01)
        slow.go.set()
        assert await stays is slow.known[spec]
        pool.close()

    asyncio.run(run())


def test_too_long_and_too_many(slow):
    async def run():
        pool = CompilePool(slow, max_pending=3, timeout_seconds=0.05)
        begin = time.monotonic()
        results = await asyncio.gather(
            *(pool.compile(GrammarSpec("regex", "a" * count)) for count in range(1, 6)), return_exceptions=True
        )
        assert time.monotonic() - begin < 10
        assert [type(result) for result in results] == [GrammarError] * 3 + [QueueFullError] * 2
        assert "0.05 s to compile" in str(results[0])
        pool.close()

    asyncio.run(run())
