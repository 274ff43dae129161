"""What an import may do: no Triton, no CUDA; references that work where Triton is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_TRITON = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "triton":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
"""
USE_REFERENCES = """
import torch
from deepinfer_kernels.attention_paged import attention_paged_ref
from deepinfer_kernels.errors import KernelUnavailableError
from deepinfer_kernels.jit import HAS_TRITON
from deepinfer_kernels.rms_norm import rms_norm, rms_norm_ref
from deepinfer_kernels.sample_gumbel import sample_gumbel_ref
from deepinfer_kernels.sample_truncate import sample_truncate_ref
from deepinfer_kernels.testing.generators import make_paged_batch
x = torch.ones(2, 4)
assert not HAS_TRITON
assert rms_norm_ref(x, torch.ones(4), 1e-5).shape == (2, 4)
batch = make_paged_batch([1, 3], [5, 3], num_qo_heads=2, num_kv_heads=1, head_dim=8)
assert attention_paged_ref(*batch.arguments, softmax_scale=1.0).shape == (4, 2, 8)
try:
    rms_norm(x, torch.ones(4), 1e-5)
except KernelUnavailableError as error:
    print(error)
assert "triton" not in sys.modules
"""


def run_python(code, **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "DEEPINFER_KERNELS_COMPILE")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]), "CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment | variables,
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_packages_import_neither_triton_nor_torch():
    code = "import sys, deepinfer, deepinfer_kernels; print([m for m in ('torch', 'triton') if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_operators_import_no_triton_and_start_no_cuda():
    code = (
        "import importlib, pathlib, sys, torch, deepinfer_kernels\n"
        "folder = pathlib.Path(deepinfer_kernels.__file__).parent\n"
        "for path in sorted(folder.glob('*.py')): importlib.import_module(f'deepinfer_kernels.{path.stem}')\n"
        "import deepinfer.ops\n"
        "assert 'deepinfer_kernels.rms_norm' in sys.modules\n"
        "print('triton' in sys.modules, torch.cuda.is_initialized())\n"
    )
    assert run_python(code).strip() == "False False"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [({}, "there is no CUDA device"), ({"TRITON_INTERPRET": "1"}, "the package triton is not installed")],
    ids=["no device", "no package"],
)
def test_references_work_without_triton(variables, reason):
    message = run_python(NO_TRITON + USE_REFERENCES, **variables)
    assert message.startswith(f"kernel _rms_norm_kernel cannot be launched: {reason}; use the torch reference")
