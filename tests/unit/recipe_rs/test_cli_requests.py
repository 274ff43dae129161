"""The command `recipe-rs` on requests: render, encode, inspect, parse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recipe_rs import ChatCompletionRequest, ConversionOptions, DeepseekV4Encoding
from recipe_rs._cli.main import EXIT_USAGE, main

TOKENIZER = Path(__file__).parents[3] / "recipe-rs" / "tests" / "data" / "bpe_small.json"
TURNS = [{"role": "user", "content": "Hi <think>"}]
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": TURNS, "thinking": {"type": "disabled"}},
    "responses": {"input": "Hi <think>", "reasoning": {"effort": "none"}},
    "messages": {"messages": TURNS, "max_tokens": 9, "thinking": {"type": "disabled"}},
}


def body(api: str, model: str = "DeepSeek-V4-Pro") -> str:
    return json.dumps({"model": model, **BODIES[api]})


def prompt() -> str:
    request = ChatCompletionRequest(body("chat")).convert(ConversionOptions())
    return DeepseekV4Encoding().render_conversation(request.conversation).prompt


@pytest.mark.parametrize("api", BODIES)
def test_render(capsys: pytest.CaptureFixture[str], api: str) -> None:
    assert main(["render", "--api", api, body(api)]) == 0
    assert capsys.readouterr().out == prompt()
    assert main(["render", "--json", "--no-compat", "--api", api, body(api)]) == 0
    rendered = json.loads(capsys.readouterr().out)
    assert rendered["prompt"] == prompt()
    assert "<think>" not in [rendered["prompt"][start:end] for start, end in rendered["special_ranges"]]
    assert rendered["num_images"] == 0


def renamed_tokenizer(folder: Path, names: list[str]) -> Path:
    """The small tokenizer with more added tokens."""
    file = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    last = max(token["id"] for token in file["added_tokens"])
    kind = file["added_tokens"][0]
    known = {token["content"] for token in file["added_tokens"]}
    missing = [name for name in names if name not in known]
    file["added_tokens"] += [{**kind, "id": last + 1 + at, "content": name} for at, name in enumerate(missing)]
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
    return path


def test_encode_and_inspect_keep_user_text_plain(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["render", "--json", body("chat")]) == 0
    rendered = json.loads(capsys.readouterr().out)
    special = [rendered["prompt"][start:end] for start, end in rendered["special_ranges"]]
    tokenizer = ["--tokenizer", str(renamed_tokenizer(tmp_path, sorted(set(special))))]
    assert main(["encode", "--count", "--api", "chat", body("chat"), *tokenizer]) == 0
    count = int(capsys.readouterr().out)
    assert main(["inspect", "--api", "chat", body("chat"), *tokenizer]) == 0
    *lines, summary = capsys.readouterr().out.splitlines()
    assert summary == f"{count} tokens, {len(special)} of them special"
    assert any(line.startswith("Hi <think> [") for line in lines)


def test_a_token_that_the_tokenizer_lacks_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--api", "chat", body("chat"), "--tokenizer", str(TOKENIZER)]) == EXIT_USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("recipe-rs encode: ")


def test_parse_follows_the_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(body("chat"), encoding="utf-8")
    assert main(["parse", "--request", str(path), "It is </b>4."]) == 0
    message = json.loads(capsys.readouterr().out)["choices"][0]["message"]
    assert message["content"] == "It is </b>4."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["render", "{"], "column"),
        (["render", "[]"], ""),
        (["render", body("chat", "other")], "model"),
        (["render", json.dumps({"model": "DeepSeek-V4-Pro", "messages": []})], "messages"),
        (["encode", "--plain", "--api", "chat", "{}"], "--plain"),
        (["parse", "--no-thinking", "--request", "x", "y"], "--request"),
    ],
)
def test_errors_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert main(arguments) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"recipe-rs {arguments[0]}: ")
    assert expected in line
