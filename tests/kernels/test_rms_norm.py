"""rms_norm against a float64 formula, and its kernel against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.rms_norm import MAX_WIDTH, rms_norm, rms_norm_ref
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

SHAPES = [(0, 64), (1, 1), (3, 129), (5, 576), (2, 0, 64), (3, 5, 64), (7, 3, 80), (64, 7168)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("shape", SHAPES)
def test_reference_follows_formula(shape):
    x, weight = make_normal(*shape, dtype=torch.float32, seed=1), make_normal(shape[-1], dtype=torch.float32, seed=2)
    values = x.numpy().astype(np.float64)
    expected = values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-5) * weight.numpy().astype(np.float64)
    np.testing.assert_allclose(rms_norm_ref(x, weight, 1e-5).numpy(), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernel_equals_reference(shape, dtype):
    x, weight = make_normal(*shape, dtype=dtype, seed=1), make_normal(shape[-1], dtype=dtype, seed=2)
    before = x.clone()
    assert_close(rms_norm(x, weight, 1e-5), rms_norm_ref(x, weight, 1e-5))
    assert_identical(x, before)


@pytest.mark.parametrize("shape", [(4, 64), (3, 5, 64)])
def test_strided_and_offset_input(shape):
    x, weight = make_normal(*shape, dtype=torch.float32, seed=1), make_normal(shape[-1], dtype=torch.float32, seed=2)
    assert_identical(rms_norm(make_strided(x), weight, 1e-5), rms_norm(x, weight, 1e-5))


def test_head_slices_of_a_fused_projection():
    fused = make_normal(3, 5 * 64, dtype=torch.float32, seed=1)
    weight = make_normal(64, dtype=torch.float32, seed=2)
    heads = fused[:, 64 : 4 * 64].unflatten(-1, (3, 64))
    assert_close(rms_norm(heads, weight, 1e-5), rms_norm_ref(heads, weight, 1e-5).contiguous())


def test_row_bits_do_not_depend_on_the_batch():
    x, weight = make_normal(9, 576, dtype=torch.float32, seed=1), make_normal(576, dtype=torch.float32, seed=2)
    assert_identical(rms_norm(x, weight, 1e-5)[4:5], rms_norm(x[4:5], weight, 1e-5))


def test_weight_of_another_dtype():
    x, weight = make_normal(2, 64, dtype=torch.float16, seed=1), make_normal(64, dtype=torch.float32, seed=2)
    assert_close(rms_norm(x, weight, 1e-5), rms_norm_ref(x, weight, 1e-5))


def test_nan_stays_in_its_row():
    x = make_normal(3, 64, dtype=torch.float32, seed=1)
    x[1, 7] = float("nan")
    y = rms_norm(x, torch.ones(64), 1e-5)
    assert y.isnan().all(dim=1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("name", "x", "weight", "eps"),
    [
        ("x", torch.zeros(4), torch.zeros(4), 1e-5),
        ("x", torch.zeros(2, 4, dtype=torch.int32), torch.zeros(4), 1e-5),
        ("x", torch.zeros(4, 2).t(), torch.zeros(4), 1e-5),
        ("x", torch.zeros(2, MAX_WIDTH + 1), torch.zeros(MAX_WIDTH + 1), 1e-5),
        ("weight", torch.zeros(2, 4), torch.zeros(5), 1e-5),
        ("weight", torch.zeros(2, 4), torch.zeros(4, dtype=torch.float64), 1e-5),
        ("weight", torch.zeros(2, 4), torch.zeros(4, device="meta"), 1e-5),
        ("eps", torch.zeros(2, 4), torch.zeros(4), 0.0),
        ("eps", torch.zeros(2, 4), torch.zeros(4), float("nan")),
    ],
)
def test_argument_errors(name, x, weight, eps):
    with pytest.raises(KernelArgumentError, match=f"^{name} must be ") as caught:
        rms_norm(x, weight, eps)
    assert caught.value.name == name
    assert caught.value.expected
