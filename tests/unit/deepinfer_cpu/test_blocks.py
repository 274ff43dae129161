"""Matrices of arbitrary bytes: refused by name, or the same product from every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

# Columns and bytes of a block.
BLOCKS = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q4_0": (32, 18), "q4_1": (32, 20), "q8_0": (32, 34),
    "q4_k": (256, 144), "q5_k": (256, 176), "q6_k": (256, 210),
}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    storage=st.sampled_from(sorted(BLOCKS)),
    num_rows=st.integers(0, 35),
    columns=st.sampled_from([0, 32, 64, 96, 256, 512]),
    seed=st.integers(0, 2**32),
    is_calm=st.booleans(),
    missing=st.sampled_from([0, 0, 0, 1, 7]),
    activations=st.sampled_from(["exact", "fast"]),
)
def test_arbitrary_bytes(storage, num_rows, columns, seed, is_calm, missing, activations):
    block_columns, block_bytes = BLOCKS[storage]
    generator = np.random.default_rng(seed)
    num_bytes = max(num_rows * (columns // block_columns) * block_bytes - missing, 0)
    # Without the highest bits of exponents scales are finite.
    data = generator.integers(0, 0x3C if is_calm else 256, num_bytes).astype(np.uint8)
    try:
        matrix = deepinfer_cpu.Matrix(storage, num_rows, columns, data)
    except deepinfer_cpu.TensorError as error:
        message = str(error)
    else:
        check_product(matrix, activations, is_calm=is_calm)
        message = "tensor data"
    assert message.startswith("tensor data")


def check_product(matrix, activations, *, is_calm):
    num_rows, columns = matrix.shape
    x = np.random.default_rng(0).standard_normal((6, columns)).astype(np.float32)
    products = []
    for instruction_set in ("portable", "auto"):
        out = np.full((6, num_rows), np.nan, np.float32)
        deepinfer_cpu.Operators(num_threads=2, instruction_set=instruction_set).linear(
            matrix, x, out, activations=activations
        )
        products.append(out)
    np.testing.assert_array_equal(*products)
    if is_calm:
        assert np.isfinite(products[0]).all()
