"""The command `recipe-rs`: encode and inspect, errors, pipes, interruption."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recipe_rs import Tokenizer
from recipe_rs._cli.inspect_prompt import escaped, pieces
from recipe_rs._cli.main import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_USAGE, main

TOKENIZER = Path(__file__).parents[3] / "recipe-rs" / "tests" / "data" / "bpe_small.json"
WITH_TOKENIZER = ["--tokenizer", str(TOKENIZER)]
PROMPT = "<think>a b\n\N{SNOWMAN}</think>12"


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(TOKENIZER)


def child(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "recipe_rs", *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_encode(capsys: pytest.CaptureFixture[str], tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(PROMPT)
    assert main(["encode", PROMPT, *WITH_TOKENIZER]) == 0
    assert capsys.readouterr().out == " ".join(map(str, ids)) + "\n"
    assert main(["encode", "--count", PROMPT, *WITH_TOKENIZER]) == 0
    assert capsys.readouterr().out == f"{len(ids)}\n"


def test_plain_text_holds_no_special_tokens(capsys: pytest.CaptureFixture[str], tokenizer: Tokenizer) -> None:
    assert main(["encode", "--plain", PROMPT, *WITH_TOKENIZER]) == 0
    ids = [int(token_id) for token_id in capsys.readouterr().out.split()]
    assert not set(ids) & set(tokenizer.added_tokens.values())
    assert tokenizer.decode(ids) == PROMPT


def test_a_file_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(PROMPT, encoding="utf-8", newline="")
    assert main(["encode", "--file", str(path), *WITH_TOKENIZER]) == 0
    assert [int(token_id) for token_id in capsys.readouterr().out.split()] == tokenizer.encode(PROMPT)


def test_standard_input_is_read(tokenizer: Tokenizer) -> None:
    out, error = child("encode", *WITH_TOKENIZER).communicate(PROMPT.encode(), timeout=50)
    assert [int(token_id) for token_id in out.split()] == tokenizer.encode(PROMPT)
    assert error == b""


@pytest.mark.parametrize("text", ["", PROMPT, "\\ \t\x1b[31m", "<think><think>"])
def test_inspect_shows_every_id_once(capsys: pytest.CaptureFixture[str], tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    for mode in ([], ["--tokens"]):
        assert main(["inspect", text, *mode, *WITH_TOKENIZER]) == 0
        *lines, summary = capsys.readouterr().out.splitlines()
        shown = [int(token_id) for line in lines for token_id in line.rpartition("[")[2].rstrip("]").split()]
        assert shown == ids
        num_special = sum(token_id in tokenizer.added_tokens.values() for token_id in ids)
        assert summary == f"{len(ids)} tokens, {num_special} of them special"


def test_pieces_of_a_prompt(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(PROMPT)
    found = list(pieces(tokenizer, ids, each_token=False))
    assert [(piece.text, piece.is_special) for piece in found] == [
        ("<think>", True),
        ("a b\n\N{SNOWMAN}", False),
        ("</think>", True),
        ("12", False),
    ]
    assert [token_id for piece in found for token_id in piece.ids] == ids


def test_escapes_keep_a_line_and_a_terminal_intact() -> None:
    assert escaped("a\n\t\\\x1b[0m\u2028\N{SNOWMAN}") == "a\\n\\t\\\\\\x1b[0m\\u2028\N{SNOWMAN}"


def test_colour(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for choice, no_colour, expected in [
        ("always", "1", True),
        ("never", "", False),
        ("auto", "", True),
        ("auto", "1", False),
    ]:
        monkeypatch.setenv("NO_COLOR", no_colour)
        assert main(["inspect", PROMPT, "--colour", choice, *WITH_TOKENIZER]) == 0
        assert ("\x1b[" in capsys.readouterr().out) is expected


def test_no_colour_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["inspect", PROMPT, *WITH_TOKENIZER]) == 0
    assert "\x1b[" not in capsys.readouterr().out


def one_sentence(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The single line that a failing command prints."""
    assert main(arguments) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"recipe-rs {arguments[0]}: ")
    return line


def test_errors_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing, binary, no_json = tmp_path / "missing", tmp_path / "binary", tmp_path / "no.json"
    binary.write_bytes(b"ab\xff")
    no_json.write_text("nothing")
    assert str(missing) in one_sentence(capsys, "encode", "--file", str(missing), *WITH_TOKENIZER)
    assert "byte 2" in one_sentence(capsys, "inspect", "--file", str(binary), *WITH_TOKENIZER)
    assert str(tmp_path) in one_sentence(capsys, "encode", "--file", str(tmp_path), *WITH_TOKENIZER)
    assert "--file" in one_sentence(capsys, "encode", "x", "--file", str(binary), *WITH_TOKENIZER)
    assert one_sentence(capsys, "encode", "x", "--tokenizer", str(no_json))
    assert str(missing) in one_sentence(capsys, "encode", "x", "--tokenizer", str(missing))
    assert "UTF-8" in one_sentence(capsys, "encode", "a\udcff", *WITH_TOKENIZER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "fetch-tokenizer" in one_sentence(capsys, "encode", "x")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["encode", "--nonsense"], ["inspect", "x", "--colour", "red"]])
def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == EXIT_USAGE
    assert "usage: recipe-rs" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "encode", "inspect", "parse", "fetch-tokenizer"])
def test_help_has_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"recipe-rs {command}" in capsys.readouterr().out.partition("examples:")[2]


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    with child("inspect", "--tokens", *WITH_TOKENIZER) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"word " * 50_000)
        process.stdin.close()
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=50) == EXIT_BROKEN_PIPE


def test_interruption_is_quiet() -> None:
    with child("encode", *WITH_TOKENIZER) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # More than a pipe holds: the write returns once the command reads.
        process.stdin.write(b"word " * 50_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=50) == EXIT_INTERRUPTED
        assert process.stderr.read() == b""
        process.stdin.close()
