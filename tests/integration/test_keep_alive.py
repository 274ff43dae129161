"""B35: a stream is never silent for long, whatever the engine does; and no comment follows the end."""

import asyncio

import pytest

from deepinfer_api.testing.byte_codec import EOS_ID, byte_ids

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("before", "between"), [(0.25, 0.0), (0.0, 0.25), (0.2, 0.2)], ids=["prefill", "between tokens", "both"]
)
def test_comments_fill_the_silence(make_server, before, between):
    def script(request):
        yield before
        yield byte_ids("a")
        yield between
        yield byte_ids("b")
        yield [EOS_ID]

    server = make_server(script, keep_alive_seconds=0.05)
    raw, streamed = asyncio.run(server.stream(CHAT, BODY))
    assert streamed.num_comments >= 2
    assert streamed.choices[0].text == "ab"
    assert raw.writes[-1] == b"data: [DONE]\n\n"


def test_a_busy_stream_has_none(make_server):
    _, streamed = asyncio.run(make_server("abcdef", keep_alive_seconds=5.0).stream(CHAT, BODY))
    assert streamed.num_comments == 0


def test_withheld_text_is_silence_too(make_server):
    """A stop string that almost matches holds text back; the client still sees that the request lives."""

    def script(request):
        for byte in byte_ids("STOSTOSTO"):
            yield [byte]
            yield 0.04
        yield [EOS_ID]

    server = make_server(script, keep_alive_seconds=0.05)
    _, streamed = asyncio.run(server.stream(CHAT, BODY | {"stop": ["STOSTOSTOP"]}))
    assert streamed.num_comments >= 2
    assert streamed.choices[0].text == "STOSTOSTO"


def test_no_comment_after_the_end(make_server):
    server = make_server("a", keep_alive_seconds=0.02)

    async def run():
        raw, _ = await server.stream(CHAT, BODY)
        count = len(raw.writes)
        await asyncio.sleep(0.1)
        assert len(raw.writes) == count

    asyncio.run(run())


def test_whole_answers_have_no_comments(make_server):
    def script(request):
        yield 0.15
        yield [EOS_ID]

    answer = asyncio.run(make_server(script, keep_alive_seconds=0.02).client.post(CHAT, BODY))
    assert answer.status == 200
    assert len(answer.writes) == 1


def test_many_streams_share_one_timer(make_server):
    def script(request):
        yield 0.15
        yield byte_ids("x")
        yield [EOS_ID]

    server = make_server(script, keep_alive_seconds=0.05)

    async def run():
        return await asyncio.gather(*(server.stream(CHAT, BODY) for _ in range(30)))

    assert all(streamed.num_comments >= 1 for _, streamed in asyncio.run(run()))
    assert len(server.app.state.services.running) == 0
