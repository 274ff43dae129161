"""Single native operators against the torch references of `deepinfer_kernels`, and against dequantised weights."""

from __future__ import annotations

import numpy as np
import pytest

from deepinfer.testing.tiny_models import make_random_tensors, make_tiny_config

torch = pytest.importorskip("torch", reason="the reference operators need torch")
deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

from deepinfer.quant.gguf_blocks import dequantize  # noqa: E402
from deepinfer_kernels.attention_paged import attention_paged_ref  # noqa: E402
from deepinfer_kernels.rms_norm import rms_norm_ref  # noqa: E402
from deepinfer_kernels.silu_and_mul import silu_and_mul_ref  # noqa: E402

ROWS = (0, 1, 2, 3, 5, 17, 33, 130)
STORAGES = ("f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q4_k", "q5_k", "q6_k")


@pytest.fixture(params=["auto", "portable"])
def operators(request):
    return deepinfer_cpu.Operators(num_threads=2, instruction_set=request.param)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def relative_error(got, expected):
    return np.abs(got - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-9)


@pytest.mark.parametrize("num_rows", ROWS)
def test_rms_norm(operators, num_rows):
    x, weight = random(num_rows, 72), random(72, seed=1)
    out = np.full_like(x, np.nan)
    operators.rms_norm(x, weight, 1e-5, out)
    expected = rms_norm_ref(torch.from_numpy(x), torch.from_numpy(weight), 1e-5)
    np.testing.assert_allclose(out, expected.numpy(), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("num_rows", ROWS)
def test_silu_and_mul(operators, num_rows):
    gate_up = 4 * random(num_rows, 80)
    out = np.full((num_rows, 40), np.nan, np.float32)
    operators.silu_and_mul(gate_up, 40, out)
    np.testing.assert_allclose(out, silu_and_mul_ref(torch.from_numpy(gate_up)).numpy(), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("num_rows", [1, 3, 17])
@pytest.mark.parametrize("head_dim", [16, 64, 80])
def test_rope(operators, num_rows, head_dim):
    x = random(num_rows, 3, head_dim)
    angles = random(num_rows, head_dim // 2, seed=1)
    got = x.copy()
    operators.rope(got, head_dim, np.cos(angles), np.sin(angles))
    first, second = np.split(x, 2, axis=2)
    cosines, sines = np.cos(angles)[:, None], np.sin(angles)[:, None]
    expected = np.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=2)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("num_rows", "num_positions"), [(1, 1), (1, 300), (5, 17), (33, 33), (20, 530)])
@pytest.mark.parametrize(("num_qo_heads", "num_kv_heads"), [(1, 1), (3, 1), (8, 1), (4, 2)])
@pytest.mark.parametrize("sliding_window", [None, 7])
def test_attention(operators, num_rows, num_positions, num_qo_heads, num_kv_heads, sliding_window):
    head_dim, block_size = 48, 16
    queries = random(num_rows, num_qo_heads, head_dim)
    keys, values = (random(num_positions, num_kv_heads, head_dim, seed=seed) for seed in (1, 2))
    out = np.full_like(queries, np.nan)
    operators.attention(
        queries, keys, values, out, num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim,
        softmax_scale=0.2, sliding_window=sliding_window,
    )  # fmt: skip
    num_blocks = -(-num_positions // block_size)
    padding = ((0, num_blocks * block_size - num_positions), (0, 0), (0, 0))
    cache = [
        torch.from_numpy(np.pad(array.astype(np.float16).astype(np.float32), padding)).reshape(
            num_blocks, block_size, num_kv_heads, head_dim
        )
        for array in (keys, values)
    ]
    expected = attention_paged_ref(
        torch.from_numpy(queries), *cache, torch.arange(num_blocks, dtype=torch.int32)[None],
        torch.tensor([num_positions], dtype=torch.int32), torch.tensor([0, num_rows], dtype=torch.int32),
        softmax_scale=0.2, max_seqlen_q=num_rows, max_seqlen_k=num_positions, sliding_window=sliding_window,
    )  # fmt: skip
    np.testing.assert_allclose(out, expected.numpy(), rtol=2e-5, atol=2e-5)


def make_matrix(storage, seed=0):
    """A matrix of 256 inputs, and its numbers [outputs, 256]."""
    tensor = make_random_tensors(make_tiny_config("llama", hidden_size=256), storage, seed=seed)["layers.0.gate_proj"]
    rows, columns = tensor.shape
    numbers = dequantize(tensor.data, tensor.storage, tensor.shape).astype(np.float64)
    return deepinfer_cpu.Matrix(storage, rows, columns, tensor.data), numbers


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("activations", "bound"), [("exact", 2e-4), ("fast", 2e-2)])
def test_linear(operators, storage, activations, bound):
    matrix, numbers = make_matrix(storage)
    assert matrix.shape == numbers.shape
    everything = None
    for num_rows in reversed(ROWS):
        x = random(num_rows, numbers.shape[1])
        out = np.full((num_rows, numbers.shape[0]), np.nan, np.float32)
        operators.linear(matrix, x, out, activations=activations)
        assert relative_error(out, x @ numbers.T) < bound
        everything = out if everything is None else everything
    assert np.isfinite(everything).all()


def test_grouped_linear(operators):
    matrices = [make_matrix("q4_k", seed) for seed in range(3)]
    starts = [0, 4, 4, 9]
    x = random(9, 256)
    out = np.full((9, matrices[0][0].shape[0]), np.nan, np.float32)
    operators.grouped_linear([matrix for matrix, _ in matrices], starts, x, out)
    expected = np.concatenate(
        [x[begin:end] @ numbers.T for (_, numbers), begin, end in zip(matrices, starts[:-1], starts[1:], strict=True)]
    )
    assert relative_error(out, expected) < 2e-4
    with pytest.raises(deepinfer_cpu.ShapeError, match="starts"):
        operators.grouped_linear([matrix for matrix, _ in matrices], [0, 4, 3, 9], x, out)


def test_wrong_lengths_are_refused_by_name(operators):
    matrix, _ = make_matrix("q8_0")
    with pytest.raises(deepinfer_cpu.ShapeError, match="x is 255 numbers"):
        operators.linear(matrix, np.zeros(255, np.float32), np.zeros(1, np.float32))
    with pytest.raises(deepinfer_cpu.ShapeError, match="out is 1 numbers"):
        operators.linear(matrix, np.zeros(256, np.float32), np.zeros(1, np.float32))
    with pytest.raises(deepinfer_cpu.ShapeError, match="length of weight is 3"):
        operators.rms_norm(np.zeros(3, np.float32), np.zeros(3, np.float32), 1e-5, np.zeros(3, np.float32))
    with pytest.raises(deepinfer_cpu.ShapeError, match="number of queries"):
        operators.attention(
            np.zeros(32, np.float32), np.zeros(16, np.float32), np.zeros(16, np.float32), np.zeros(32, np.float32),
            num_qo_heads=1, num_kv_heads=1, head_dim=16, softmax_scale=1.0,
        )  # fmt: skip
