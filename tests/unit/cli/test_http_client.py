"""The client against a socket that answers whatever the test says."""

import asyncio
import json

import pytest

from deepinfer.cli.http_client import HttpClient, ServerError


def exchange(answer, use, *, delay=0.0, pieces=1):
    """Run `use(client)` against a server that sends `answer` in `pieces` and closes."""
    requests = []

    async def run():
        async def handle(reader, writer):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            requests.append((head, await reader.readexactly(length)))
            size = max(1, len(answer) // pieces)
            for start in range(0, len(answer), size):
                writer.write(answer[start : start + size])
                await writer.drain()
                await asyncio.sleep(delay)
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await use(HttpClient(f"http://127.0.0.1:{port}/v1/", api_key="secret"))

    return asyncio.run(run()), requests


def http(body, status="200 OK"):
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def chunked(*parts):
    return (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        + b"0\r\n\r\n"
    )


async def collect(client):
    return [event.data async for event in client.stream("/v1/completions", {"prompt": "ä"})]


def test_get_json_sends_the_key_and_drops_v1():
    value, requests = exchange(http(b'{"data": [{"id": "m"}]}'), lambda client: client.first_model())
    assert value == "m"
    assert requests[0][0].startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"authorization: Bearer secret" in requests[0][0]


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_streams_are_the_same_however_they_are_cut(pieces):
    frames = b'data: {"a": 1}\n\n', b": keep-alive\n\n", b'data: {"b": "\xc3\xa4"}\n\ndata: [DONE]\n\n'
    events, requests = exchange(chunked(*frames), collect, pieces=pieces)
    assert events == [{"a": 1}, {"b": "ä"}]
    assert json.loads(requests[0][1]) == {"prompt": "ä"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (http(b'{"error": {"message": "no such model"}}', "404 Not Found"), "answered 404: no such model"),
        (http(b"<html>", "502 Bad Gateway"), "answered 502: <html>"),
        (chunked(b'data: {"a": 1}\n\n'), "before its end"),
        (chunked(b'data: {"error": {"message": "boom"}}\n\n'), "failed while answering: boom"),
        (chunked(b"data: nonsense\n\n"), "no JSON object"),
        (b"", "without an answer"),
        (b"nonsense\r\n\r\n", "broke"),
    ],
)
def test_failures_are_one_sentence(answer, message):
    with pytest.raises(ServerError, match=message):
        exchange(answer, collect)


def test_nobody_answers():
    with pytest.raises(ServerError, match=r"no server answers at http://127\.0\.0\.1:9"):
        asyncio.run(HttpClient("127.0.0.1:9").first_model())


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http:///v1"])
def test_urls_are_checked(url):
    with pytest.raises(ServerError, match="--url must be an address"):
        HttpClient(url)
