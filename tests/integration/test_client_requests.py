"""Requests as real client packages send them: served, or refused by the name of what is not served yet."""

import asyncio
import json
from pathlib import Path

import pytest

from deepinfer.structured import CompilePool, GrammarCompiler
from deepinfer_api.testing.byte_codec import make_byte_vocabulary
from deepinfer_api.testing.scripts import form_script

FILE = Path(__file__).parent.parent / "data" / "client_requests.jsonl"
LINES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
ALIASES = ("deepseek-chat", "deepseek-reasoner", "claude-sonnet-4-5", "gpt-5", "e")


def expected_param(body):
    """The first field of a body that this server does not serve yet, or None."""
    if body is None:
        return None
    if body.get("tools"):
        return "tools"
    for index, message in enumerate(body.get("messages") or ()):
        if isinstance(message.get("content"), list):
            for number, part in enumerate(message["content"]):
                if part["type"] != "text":
                    return f"messages[{index}].content[{number}]"
    return None


@pytest.mark.parametrize("line", LINES, ids=[line["id"] for line in LINES])
def test_line(make_server, line):
    body, path = line["body"], line["path"]
    sends_key = {"authorization", "x-api-key"} & line["headers"].keys()
    pool = CompilePool(GrammarCompiler(make_byte_vocabulary))
    server = make_server(
        form_script,
        backend={"compile_pool": pool},
        model_aliases=ALIASES,
        api_keys=("test-key",) if sends_key else (),
    )
    answer = asyncio.run(server.client.request(line["method"], path, headers=line["headers"], body=body))
    if path.endswith("/embeddings"):
        assert answer.status == 404
        return
    param = expected_param(body)
    if param is not None:
        assert answer.status == 400
        assert answer.json()["error"]["param"] == param
        assert param in answer.json()["error"]["message"]
        return
    assert answer.status == 200, answer.body
    if body is not None and body.get("stream"):
        _, streamed = asyncio.run(server_stream(server, path, line))
        assert streamed.choices[0].text
        text = streamed.choices[0].text
    elif body is not None and "messages" in body:
        text = answer.json()["choices"][0]["message"]["content"]
    pool.close()
    if (body or {}).get("response_format"):
        value = json.loads(text)
        if body["response_format"]["type"] == "json_schema":
            assert isinstance(value["city"], str)
            assert isinstance(value["n"], int)


async def server_stream(server, path, line):
    server.client.headers = line["headers"]
    return await server.stream(path, line["body"])
