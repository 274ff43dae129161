"""silu_and_mul against a float64 formula, and its kernel against the reference."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.silu_and_mul import silu_and_mul, silu_and_mul_ref
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

SHAPES = [(0, 64), (1, 2), (3, 258), (5, 3072), (2, 9000)]


@pytest.mark.parametrize("shape", SHAPES)
def test_reference_follows_formula(shape):
    gate_up = make_normal(*shape, dtype=torch.float32, seed=1, scale=4.0)
    gate, up = gate_up.double().chunk(2, dim=-1)
    expected = gate / (1 + torch.exp(-gate)) * up
    torch.testing.assert_close(silu_and_mul_ref(gate_up).double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernel_equals_reference(shape, dtype):
    gate_up = make_normal(*shape, dtype=dtype, seed=1, scale=2.0)
    before = gate_up.clone()
    assert_close(silu_and_mul(gate_up), silu_and_mul_ref(gate_up))
    assert_identical(gate_up, before)


def test_strided_and_offset_input():
    gate_up = make_normal(4, 66, dtype=torch.float32, seed=1)
    assert_identical(silu_and_mul(make_strided(gate_up)), silu_and_mul(gate_up))


def test_large_gates_do_not_overflow():
    gate_up = torch.tensor([[80.0, -80.0, 0.0, 2.0, 3.0, 4.0]])
    y = silu_and_mul(gate_up)
    assert y[0, 0] == 160.0
    assert abs(y[0, 1]) < 1e-30
    assert y[0, 2] == 0.0


@pytest.mark.parametrize(
    "gate_up",
    [torch.zeros(4), torch.zeros(2, 5), torch.zeros(2, 0), torch.zeros(2, 4, dtype=torch.int64), torch.zeros(4, 2).t()],
)
def test_argument_errors(gate_up):
    with pytest.raises(KernelArgumentError, match=r"^gate_up must be "):
        silu_and_mul(gate_up)
