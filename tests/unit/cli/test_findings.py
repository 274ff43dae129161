"""The doctor's findings: complete, serialisable, and honest about what is missing."""

import contextlib
import importlib.util
import json

import pytest
from typer import Exit

from deepinfer.cli import findings
from deepinfer.cli.doctor import doctor

TORCH = {"version": "9.9", "threads": 3, "cpu": "AVX9", "gpus": [], "gpu_memory": []}


@pytest.fixture
def _fake_torch(monkeypatch):
    monkeypatch.setattr(findings, "ask_torch", lambda: TORCH)


@pytest.mark.usefixtures("_fake_torch")
def test_every_subject_is_there():
    subjects = [finding.subject for finding in findings.examine()]
    assert subjects == ["open-deepinfer", "processor", "memory", "torch", "device", "triton", "codec", "CPU operators",
                        "server", "default model"]  # fmt: skip


def test_a_torch_that_cannot_load_is_a_finding(monkeypatch):
    monkeypatch.setattr(findings, "_ASK_TORCH", "raise ImportError('libcuda is broken')")
    answer = findings.ask_torch()
    assert answer == "ImportError: libcuda is broken"
    assert findings._torch(answer).status == "missing"
    assert findings._device(answer).found == "no CUDA device"


def test_a_gpu_needs_triton(monkeypatch):
    gpu = TORCH | {"gpus": ["Card"], "gpu_memory": [8 << 30]}
    assert findings._device(gpu).found == "Card (8.0 GiB)"
    monkeypatch.setattr(findings, "_version", lambda name: None)
    assert findings._triton(gpu).status == "missing"
    assert findings._triton(TORCH).status == "note"


def test_an_absent_native_module_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert findings._codec().status == "missing"
    assert findings._codec().found == "recipe-rs is not installed"
    operators = findings._cpu_operators(None)
    assert operators.status == "note"
    assert "torch reference" in operators.consequence


def test_a_native_module_that_does_not_load_is_named(monkeypatch):
    def fail(name):
        raise ImportError("wrong glibc")

    monkeypatch.setattr(importlib, "import_module", fail)
    assert findings._load_problem("json", "some-wheel") == "some-wheel does not load: wrong glibc"


def test_a_model_that_is_not_usable_is_said(tmp_path):
    pytest.importorskip("deepinfer_cpu", reason="the CPU operators are not installed")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    finding = findings._cpu_operators(tmp_path / "bad.gguf")
    assert finding.status == "note"
    assert "bad.gguf" in finding.consequence


@pytest.mark.usefixtures("_fake_torch")
def test_json_output(capsys):
    with contextlib.suppress(Exit):  # where something needed is missing
        doctor(None, json_output=True)
    report = json.loads(capsys.readouterr().out)
    assert all(set(entry) == {"subject", "status", "found", "consequence"} for entry in report)


def test_cpus_are_positive():
    assert findings.usable_cpus() >= 1
