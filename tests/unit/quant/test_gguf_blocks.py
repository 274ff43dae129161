"""Stored numbers to float32."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from deepinfer.quant.gguf_blocks import BLOCK_STORAGES, PLAIN_STORAGES, dequantize, half_split_rows
from deepinfer.testing import make_random_blocks


@pytest.mark.parametrize("storage", PLAIN_STORAGES + BLOCK_STORAGES)
@pytest.mark.parametrize("shape", [(1, 256), (3, 512), (5000, 256)])
def test_equals_the_gguf_package(storage, shape):
    data = make_random_blocks(np.random.default_rng(1), storage, shape, scale=0.1)
    values = dequantize(data, storage, shape)
    expected = gguf.dequantize(data.reshape(shape[0], -1), gguf.GGMLQuantizationType[storage.upper()])
    assert values.dtype == np.float32
    assert values.shape == shape
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values, expected.reshape(shape))


def test_bfloat16_is_the_upper_half_of_float32():
    values = np.array([1.0, -2.5, 0.0, 3.0e38, 1e-40, np.inf], np.float32)
    data = (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(np.uint8)
    truncated = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    np.testing.assert_array_equal(dequantize(data, "bf16", (6,)), truncated)


def test_a_float32_tensor_is_not_copied():
    data = np.arange(8, dtype=np.float32).view(np.uint8)
    assert np.shares_memory(dequantize(data, "f32", (2, 4)), data)


def test_an_unknown_storage_is_an_error():
    with pytest.raises(ValueError, match="iq2_xs"):
        dequantize(np.zeros(256, np.uint8), "iq2_xs", (1, 256))


def test_half_split_rows_takes_even_rows_first():
    rows = np.arange(12).reshape(12, 1)  # two heads of six rows
    assert half_split_rows(rows, 2).reshape(-1).tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]


def test_half_split_rows_of_a_bias():
    assert half_split_rows(np.arange(4), 1).tolist() == [0, 2, 1, 3]
