"""B23: whoever leaves at whatever moment, the engine hears of it, nothing leaks, and the next request is served."""

import asyncio
import contextlib

import pytest

from deepinfer_api.testing.scripts import text_script

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def chat(**fields):
    return {"messages": [{"role": "user", "content": "hi"}], **fields}


def check_nothing_is_left(server):
    services = server.app.state.services
    assert server.backend.active == {}
    assert len(services.running) == 0
    assert services.admission.num_in_flight == 0
    assert services.admission.num_queued_tokens == 0


def silent(request):
    """Never produces a token: a long prefill."""
    yield asyncio.Event()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_leaving_before_the_first_byte(make_server, path, stream, n):
    server = make_server(silent)
    body = chat(stream=stream, n=n) if path == CHAT else {"prompt": "x", "stream": stream, "n": n}

    async def run():
        answer = await asyncio.wait_for(server.client.request("POST", path, body=body, leave_at_once=True), 5)
        assert answer.status == 0
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(server.backend.aborted) == n
    check_nothing_is_left(server)
    assert server.app.state.services.metrics.request_success == {"abort": n}


@pytest.mark.parametrize("num_writes", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2])
def test_leaving_after_some_deltas(make_server, num_writes, n):
    server = make_server(text_script("x" * 10_000))
    body = chat(stream=True, n=n)

    async def run():
        answer = await server.client.request("POST", CHAT, body=body, leave_after_writes=num_writes)
        assert len(answer.writes) == num_writes
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(server.backend.aborted) == n
    check_nothing_is_left(server)


def test_two_hundred_come_and_go_and_the_next_is_served(make_server, caplog):
    def script(request):
        if len(server.backend.requests) <= 400:
            yield 0.001
            yield from text_script("some answer " * 20)(request)
        else:
            yield from text_script("fresh")(request)

    server = make_server(script)
    body = chat()

    async def leave(number):
        kind = number % 4
        request = body | {"stream": kind != 3, "n": 1 + number % 2}
        await server.client.request(
            "POST", CHAT, body=request, leave_at_once=kind in (0, 3), leave_after_writes=(None, 1, 7, None)[kind]
        )

    async def run():
        await asyncio.gather(*(leave(number) for number in range(200)))
        await asyncio.sleep(0.01)
        check_nothing_is_left(server)
        server.backend.requests.extend(server.backend.requests[:1] * 400)
        return await server.client.post(CHAT, body)

    answer = asyncio.run(run())
    assert answer.json()["choices"][0]["message"]["content"] == "fresh"
    check_nothing_is_left(server)
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []


def test_a_slow_client_is_given_up(make_server):
    server = make_server(text_script("x" * 1000), send_timeout_seconds=0.1)

    async def run():
        answer = await asyncio.wait_for(
            server.client.request("POST", CHAT, body=chat(stream=True), stuck=asyncio.Event()), 5
        )
        assert answer.writes == []
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(server.backend.aborted) == 1
    check_nothing_is_left(server)


def test_a_client_that_dawdles_gets_everything(make_server):
    server = make_server("abc", send_timeout_seconds=5)

    async def run():
        stuck = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, stuck.set)
        return await server.client.request("POST", CHAT, body=chat(stream=True), stuck=stuck)

    answer = asyncio.run(run())
    assert answer.writes[-1] == b"data: [DONE]\n\n"
    check_nothing_is_left(server)


def test_a_cancelled_handler_aborts(make_server):
    """The event loop's own shutdown cancels tasks; that, too, frees the engine."""
    server = make_server(silent)

    async def run():
        task = asyncio.create_task(server.client.post(CHAT, chat(stream=True)))
        while not server.backend.active:
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(run())
    check_nothing_is_left(server)


def test_request_timeout_is_a_504(make_server):
    server = make_server(silent, request_timeout_seconds=0.05)
    answer = asyncio.run(server.client.post(CHAT, chat()))
    assert answer.status == 504
    assert answer.json()["error"]["code"] == "timeout"
    check_nothing_is_left(server)
    assert server.app.state.services.metrics.request_errors == {"timeout": 1}
