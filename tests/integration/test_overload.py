"""Too much at once: 429 before the first byte, with a small Retry-After and the limits; what runs is not disturbed."""

import asyncio

from deepinfer_api.testing.scripts import text_script

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "hi"}]}


def test_requests_above_the_limit(make_server):
    gates = []

    def script(request):
        gates.append(asyncio.Event())
        yield gates[-1]
        yield from text_script("done")(request)

    server = make_server(script, max_concurrent_requests=2)

    async def run():
        first = [asyncio.create_task(server.client.post(CHAT, BODY | {"stream": s})) for s in (True, False)]
        while len(gates) < 2:
            await asyncio.sleep(0)
        refused = await server.client.post(CHAT, BODY | {"stream": True})
        for gate in gates:
            gate.set()
        return refused, await asyncio.gather(*first)

    refused, served = asyncio.run(run())
    assert refused.status == 429
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["x-ratelimit-limit-requests"] == "2"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert [answer.status for answer in served] == [200, 200]
    assert served[0].headers["x-ratelimit-remaining-requests"] in ("0", "1")
    assert server.app.state.services.metrics.admission_rejections == {"requests": 1}
    assert asyncio.run(server.client.post("/v1/chat/completions", BODY | {"max_tokens": 0})).status == 400


def test_waiting_prompt_tokens_above_the_limit(make_server):
    gate_holder = []

    def script(request):
        gate_holder.append(asyncio.Event())
        yield gate_holder[0]
        yield from text_script("done")(request)

    server = make_server(script, max_queued_tokens=100)

    async def run():
        first = asyncio.create_task(server.client.post("/v1/completions", {"prompt": "x" * 80}))
        while not gate_holder:
            await asyncio.sleep(0)
        refused = await server.client.post("/v1/completions", {"prompt": "x" * 30})
        gate_holder[0].set()
        return refused, await first, await server.client.post("/v1/completions", {"prompt": "x" * 30})

    refused, first, second = asyncio.run(run())
    assert refused.status == 429
    assert "80 prompt tokens are waiting" in refused.json()["error"]["message"]
    assert (first.status, second.status) == (200, 200)


def test_the_same_request_id_twice_at_once(make_server):
    server = make_server("abc")

    async def run():
        headers = {"x-request-id": "retry-1"}
        return await asyncio.gather(*(server.client.post(CHAT, BODY, headers=headers) for _ in range(2)))

    answers = asyncio.run(run())
    assert [answer.status for answer in answers] == [200, 200]
    assert [answer.headers["x-request-id"] for answer in answers] == ["retry-1", "retry-1"]
    ids = [request.request_id for request in server.backend.requests]
    assert len(set(ids)) == 2
    assert "retry-1" in ids
