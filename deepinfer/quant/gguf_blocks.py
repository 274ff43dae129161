"""From stored numbers to float32: plain types and the GGUF block types. Exact: no rounding happens here.

The formulas of the block types are those of the `gguf` package, which is imported at the first use of one.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PLAIN_STORAGES: Final = ("f32", "f16", "bf16")
BLOCK_STORAGES: Final = ("q8_0", "q4_0", "q4_1", "q4_k", "q5_k", "q6_k")


def dequantize(data: NDArray[np.uint8], storage: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Numbers of one tensor.

    Args:
        data: uint8, contiguous, the bytes of the whole tensor.
        storage: one of `PLAIN_STORAGES` or `BLOCK_STORAGES`.
        shape: logical shape; blocks run along the last axis.

    Returns:
        float32 of the given shape; for "f32" a read-only view of `data`, for other types new memory.

    Raises:
        ValueError: the storage is not known.
    """
    if storage == "f32":
        return data.view(np.float32).reshape(shape)
    if storage == "f16":
        return data.view(np.float16).astype(np.float32).reshape(shape)
    if storage == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(shape)
    if storage not in BLOCK_STORAGES:
        raise ValueError(f"unknown storage {storage!r}")
    from gguf import GGMLQuantizationType, quants

    rows = data.reshape(math.prod(shape[:-1]), -1)
    return quants.dequantize(rows, GGMLQuantizationType[storage.upper()]).reshape(shape)


def half_split_rows(matrix: NDArray[Any], num_heads: int) -> NDArray[Any]:
    """Reorder rows stored for rotation of adjacent pairs to half-split order.

    Within each head, rows (0, 1, 2, 3, ...) that rotate as (0, 1), (2, 3), ... become 0, 2, ..., 1, 3, ..., which
    rotate as (i, i + head_dim / 2).

    Args:
        matrix: [num_heads * head_dim, ...], a projection's weight or bias.
    """
    pairs = matrix.reshape(num_heads, -1, 2, *matrix.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(matrix.shape)
