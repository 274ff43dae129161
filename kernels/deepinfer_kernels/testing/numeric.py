"""Tolerances of operator tests and the comparison that applies them."""

from __future__ import annotations

import torch

# dtype of the output -> (atol, rtol) of a kernel against its reference. The bf16 rtol is one unit in the last place:
# Triton's interpreter truncates where a device rounds to nearest even.
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float32: (2e-6, 2e-6),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1e-3, 2**-7),
}

# The same for operators whose matrix products round an operand: a probability is off by half a unit in the last
# place, so an output by as much times the largest |v| (about 4 for normal values).
DOT_TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float32: (4e-6, 4e-6),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1e-2, 2**-7),
}


def assert_close(got: torch.Tensor, expected: torch.Tensor, *, dtype: torch.dtype | None = None) -> None:
    """Compare values within the tolerance of `dtype` (that of `expected` by default); NaNs must match.

    Raises:
        AssertionError: shape, dtype, stride or a value differs.
    """
    assert got.stride() == expected.stride(), f"strides {got.stride()} and {expected.stride()}"
    atol, rtol = TOLERANCES[dtype or expected.dtype]
    torch.testing.assert_close(got, expected, atol=atol, rtol=rtol, equal_nan=True)


def assert_identical(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare dtype, shape, stride and every bit.

    Raises:
        AssertionError: something differs.
    """
    assert got.dtype == expected.dtype, f"{got.dtype} and {expected.dtype}"
    assert got.shape == expected.shape, f"shapes {tuple(got.shape)} and {tuple(expected.shape)}"
    assert got.stride() == expected.stride(), f"strides {got.stride()} and {expected.stride()}"
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[got.element_size()]
    num_different = int((got.contiguous().view(width) != expected.contiguous().view(width)).sum())
    assert num_different == 0, f"{num_different} of {got.numel()} elements differ"
