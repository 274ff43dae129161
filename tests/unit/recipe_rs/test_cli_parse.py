"""The command `recipe-rs parse`: responses and events of the three protocols."""

from __future__ import annotations

import json

import pytest

from recipe_rs._cli.main import EXIT_USAGE, main

CALL = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="add">\n<｜DSML｜parameter name="a" string="false">1'  # noqa: RUF001
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"  # noqa: RUF001
)
OUTPUT = f"Let me see.</think>It is 4.\n\n{CALL}"


def parsed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["parse", *arguments]) == 0
    return capsys.readouterr().out


def test_chat(capsys: pytest.CaptureFixture[str]) -> None:
    choice = json.loads(parsed(capsys, OUTPUT))["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert (message["reasoning_content"], message["content"]) == ("Let me see.", "It is 4.")
    function = message["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("add", {"a": 1})


def test_responses(capsys: pytest.CaptureFixture[str]) -> None:
    items = json.loads(parsed(capsys, "--api", "responses", OUTPUT))["output"]
    assert [item["type"] for item in items] == ["reasoning", "message", "function_call"]


def test_messages(capsys: pytest.CaptureFixture[str]) -> None:
    response = json.loads(parsed(capsys, "--api", "messages", OUTPUT))
    assert [block["type"] for block in response["content"]] == ["thinking", "text", "tool_use"]
    assert response["stop_reason"] == "tool_use"


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    choice = json.loads(parsed(capsys, "--no-thinking", "--finish-reason", "length", "It is 4."))["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("It is 4.", "length")
    hermes = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    choice = json.loads(parsed(capsys, "--no-thinking", "--format", "hermes", hermes))["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "add"


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("text", ["", OUTPUT])
def test_events_arrive_by_the_chunk(capsys: pytest.CaptureFixture[str], api: str, text: str) -> None:
    whole = parsed(capsys, "--api", api, "--events", text)
    pieces = parsed(capsys, "--api", api, "--events", "--chunk-size", "1", text)
    assert whole.endswith("\n\n")
    assert pieces.count("data: ") >= whole.count("data: ") + (10 if text else 0)
    for block in whole.removesuffix("\n\n").split("\n\n"):
        *event, data = block.split("\n")
        assert len(event) == (0 if api == "chat" else 1)
        assert data == "data: [DONE]" or json.loads(data.removeprefix("data: "))
    assert ("[DONE]" in whole) is (api == "chat")


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5"])
def test_a_chunk_size_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], size: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["parse", "x", "--chunk-size", size])
    assert end.value.code == EXIT_USAGE
    assert "whole number" in capsys.readouterr().err
