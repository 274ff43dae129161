"""bench_kernels refuses where its figures would mean nothing, and its cases name every operator."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from deepinfer_kernels.errors import KernelUnavailableError
from deepinfer_kernels.testing.bench import require_cuda
from deepinfer_kernels.testing.cases import iterate_cases

ROOT = Path(__file__).parents[2]
# Modules of the package that hold no operator of their own.
SUPPORT = {"__init__", "arguments", "attention_paged_decode", "attention_paged_prefill", "errors", "jit", "launch"}


BENCH = ROOT / "benchmarks" / "bench_kernels.py"


def test_refuses_without_a_device():
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]),
        "CUDA_VISIBLE_DEVICES": "",
    }
    result = subprocess.run(
        [sys.executable, str(BENCH)], capture_output=True, text=True, env=environment, timeout=55, check=False
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("kernel speed can be measured on a CUDA device only")
    assert result.stderr.count("\n") == 1


def test_unknown_operator(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_kernels", "--op", "conv"])
    assert runpy.run_path(str(BENCH))["main"]() == 2
    assert capsys.readouterr().err.startswith(
        "there is no operator 'conv'; there are add_and_rms_norm, attention_paged, "
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_require_cuda_names_the_reason():
    with pytest.raises(KernelUnavailableError, match="this machine has none"):
        require_cuda()


def test_every_operator_has_a_case():
    operators = {path.stem for path in (ROOT / "kernels" / "deepinfer_kernels").glob("*.py")} - SUPPORT
    assert {case.op for case in iterate_cases()} == operators


def test_cases_run_their_references():
    for case in iterate_cases():
        call = case.prepare(2, 70, torch.device("cpu"))
        case.reference(*call.arguments, **call.options)
        assert call.num_bytes > 0
