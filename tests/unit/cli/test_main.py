"""The command line as a user meets it: help, and one sentence with exit code 2 for whatever goes wrong."""

import io
import logging
import socket
import subprocess
import sys

import pytest

from deepinfer.cli.main import main


@pytest.fixture(autouse=True)
def loggers_as_before():
    """`serve` takes over the log of the process that it runs in; here that is the process of all other tests."""
    loggers = [logging.getLogger(name) for name in ("deepinfer", "deepinfer.engine.build", "deepinfer_api", "uvicorn")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


@pytest.mark.parametrize("command", [(), ("serve",), ("chat",), ("generate",), ("bench",), ("doctor",)])
def test_every_command_has_help(capsys, command):
    code, out, _ = run(capsys, *command, "--help")
    assert code == 0
    assert "Usage" in out


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert (code, out.strip()) == (0, "0.1.0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve", "no/such/model.gguf"), "there is no model at no/such/model.gguf"),
        (("serve", "{tmp}/empty.gguf"), "empty.gguf"),
        (("serve", "{tmp}"), "without config.json"),
        (("serve", "{tmp}/empty.gguf", "--kv-cache-memory", "lots"), "--kv-cache-memory must be a size"),
        (("serve", "{tmp}/empty.gguf", "--block-size", "48"), "block_size"),
        (("serve", "{tmp}/empty.gguf", "--device", "abacus"), "device must be one of"),
        (("serve", "{tmp}/empty.gguf", "--dtype", "int3"), "dtype must be one of"),
        (("serve", "{tmp}/empty.gguf", "--cpu-backend", "x"), "cpu_backend must be one of"),
        (("serve", "{tmp}/empty.gguf", "--max-model-len", "0"), "max_model_len"),
        (("serve", "{tmp}/empty.gguf", "--threads", "0"), "num_threads"),
        (("serve", "{tmp}/empty.gguf", "--port", "{port}"), "port {port} is in use on 127.0.0.1"),
        (("serve", "{tmp}/empty.gguf", "--port", "70000"), "port must be from 0 to 65535"),
        (("serve", "{tmp}/empty.gguf", "--log-level", "loud"), "--log-level must be one of"),
        (("serve", "{tmp}/empty.gguf", "--alias", ""), "model name must not be empty"),
        (("serve", "{tmp}/empty.gguf", "--api-key", " x"), "API key"),
        (("serve", "{tmp}/empty.gguf", "--max-body-size", "0"), "--max-body-size must be a size"),
        (("chat", "--url", "http://127.0.0.1:9"), "no server answers"),
        (("chat", "model.gguf", "--url", "http://127.0.0.1:9"), "exclude each other"),
        (("generate", "hi", "--url", "nonsense://x"), "--url must be an address"),
        (("generate", "caf\udce9"), "the prompt must be UTF-8 text, but has the byte 0xe9 at position 3"),
        (("generate", "hi", "--system", "\udcff"), "--system must be UTF-8 text, but has the byte 0xff at position 0"),
        (("chat", "--system", "\udcff"), "--system must be UTF-8 text"),
        (("bench", "--url", "http://127.0.0.1:9"), "no server answers"),
        (("serve", "--nonsense"), "No such option"),
        (("fly",), "No such command"),
    ],
)
def test_failures_are_one_sentence_and_code_2(capsys, tmp_path, arguments, message):
    (tmp_path / "empty.gguf").write_bytes(b"")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        names = {"tmp": str(tmp_path), "port": str(taken.getsockname()[1])}
        code, _, err = run(capsys, *(argument.format(**names) for argument in arguments))
    assert code == 2
    assert message.format(**names) in " ".join(err.split()).replace("│ ", "")
    assert "Traceback" not in err


def test_standard_input_that_is_no_text_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))
    code, _, err = run(capsys, "generate", "-")
    assert code == 2
    assert err == "error: standard input must be UTF-8 text, but has the byte 0xe9 at position 3\n"


def test_an_unwritable_cache_folder_is_one_sentence(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPINFER_CACHE_DIR", str(tmp_path / "file" / "cache"))
    code, _, err = run(capsys, "serve")
    assert code == 2
    assert "cannot write to the model folder" in err
    assert "Traceback" not in err


def test_help_and_the_server_import_no_torch():
    program = (
        "import sys\n"
        "from deepinfer.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'fastapi', 'numpy', 'httptools'} & sys.modules.keys(), sorted(sys.modules)\n"
        "import deepinfer_api.app, deepinfer_api.server, deepinfer_api.launch\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
