"""add_and_rms_norm: an addition in place and a norm of what was stored."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.add_and_rms_norm import add_and_rms_norm, add_and_rms_norm_ref
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.rms_norm import rms_norm
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

SHAPES = [(0, 64), (1, 1), (3, 129), (5, 576), (2, 7168)]


@pytest.mark.parametrize("shape", SHAPES)
def test_reference_follows_formula(shape):
    x, residual = (make_normal(*shape, dtype=torch.float32, seed=seed) for seed in (1, 2))
    weight = make_normal(shape[1], dtype=torch.float32, seed=3)
    total = x.double() + residual.double()
    expected = total / (total.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    y = add_and_rms_norm_ref(x, residual, weight, 1e-5)
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(residual.double(), total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernel_equals_reference(shape, dtype):
    x, residual = (make_normal(*shape, dtype=dtype, seed=seed) for seed in (1, 2))
    weight = make_normal(shape[1], dtype=dtype, seed=3)
    before, expected_residual = x.clone(), residual.clone()
    expected = add_and_rms_norm_ref(x, expected_residual, weight, 1e-5)
    y = add_and_rms_norm(x, residual, weight, 1e-5)
    assert_close(residual, expected_residual)
    # The norm is of the stored sum, which may be one bf16 unit beside the reference's: two units together.
    torch.testing.assert_close(y, expected, atol=2e-3, rtol=2**-6) if dtype == torch.bfloat16 else assert_close(
        y, expected
    )
    assert_identical(x, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_equals_addition_then_norm(dtype):
    x, residual = (make_normal(5, 129, dtype=dtype, seed=seed) for seed in (1, 2))
    weight = make_normal(129, dtype=dtype, seed=3)
    y = add_and_rms_norm(x, residual, weight, 1e-5)
    assert_identical(y, rms_norm(residual, weight, 1e-5))


def test_strided_and_offset_input():
    x, residual = (make_normal(4, 64, dtype=torch.float32, seed=seed) for seed in (1, 2))
    weight = make_normal(64, dtype=torch.float32, seed=3)
    strided = make_strided(residual)
    y = add_and_rms_norm(make_strided(x), strided, weight, 1e-5)
    assert_identical(y, add_and_rms_norm(x, residual, weight, 1e-5))
    assert_identical(strided.contiguous(), residual)


@pytest.mark.parametrize(
    ("name", "x", "residual", "weight"),
    [
        ("x", torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.zeros(4)),
        ("residual", torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(4)),
        ("residual", torch.zeros(2, 4), torch.zeros(2, 4, dtype=torch.float16), torch.zeros(4)),
        ("weight", torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(1, 4)),
    ],
)
def test_argument_errors(name, x, residual, weight):
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        add_and_rms_norm(x, residual, weight, 1e-5)
