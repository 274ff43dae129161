"""How kernels are launched: block sizes and warps by size class, the device guard, options common to all.

The tables are fixed, so that a shape always runs the same code and gives the same bits.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

# Multiply-adds may be contracted. Stated at each launch because the default of Triton changes with its version.
COMMON_OPTIONS = {"enable_fp_fusion": True}
# Every operation is rounded on its own: for operators that promise the bits of their reference.
UNFUSED_OPTIONS = {"enable_fp_fusion": False}


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """Tile width and warps of a program that works on one row."""

    block: int
    num_warps: int

    def options(self) -> dict[str, int | bool]:
        """Keyword arguments of the launch."""
        return {"num_warps": self.num_warps, **COMMON_OPTIONS}


def cdiv(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def next_power_of_two(n: int) -> int:
    """Return the least power of two >= n, at least 1."""
    return 1 << max(n - 1, 0).bit_length()


def row_config(width: int, *, max_block: int = 8192) -> LaunchConfig:
    """Return tile and warps for a row of `width` elements, each warp holding 8 to 32 elements per lane."""
    block = max(min(next_power_of_two(width), max_block), 16)
    if block <= 512:
        return LaunchConfig(block, 1)
    if block <= 2048:
        return LaunchConfig(block, 4)
    return LaunchConfig(block, 8)


def device_guard(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Make the tensor's device current for a launch; nothing on a CPU (interpreter)."""
    if tensor.is_cuda:
        return torch.cuda.device(tensor.device)
    return nullcontext()
