"""Checks of operator arguments; each raises KernelArgumentError with the argument's name, value and rule.

They look at metadata only (shape, dtype, stride, device) and never wait for a device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from deepinfer_kernels.errors import KernelArgumentError

FLOAT_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
INDEX_DTYPES = (torch.int32, torch.int64)


def check_tensor(
    name: str,
    tensor: torch.Tensor,
    *,
    shape: Sequence[int | str],
    dtypes: Sequence[torch.dtype],
    device: torch.device | None = None,
) -> None:
    """Check rank, fixed sizes, dtype, device, and that the last dimension is contiguous.

    Args:
        shape: an int for a size that must match, a name for one that may be anything.
        dtypes: the allowed element types.
        device: where it must lie; None allows every device.
    """
    if not isinstance(tensor, torch.Tensor):
        raise KernelArgumentError(name, got=type(tensor).__name__, expected="a tensor")
    sizes = tuple(tensor.shape)
    if len(sizes) != len(shape) or any(isinstance(w, int) and w != s for s, w in zip(sizes, shape, strict=False)):
        wanted = ", ".join(str(w) for w in shape)
        raise KernelArgumentError(name, got=f"a tensor of shape {list(sizes)}", expected=f"of shape [{wanted}]")
    if tensor.dtype not in dtypes:
        wanted = " or ".join(str(d).removeprefix("torch.") for d in dtypes)
        raise KernelArgumentError(name, got=str(tensor.dtype).removeprefix("torch."), expected=wanted)
    if device is not None and tensor.device != device:
        raise KernelArgumentError(name, got=f"on {tensor.device}", expected=f"on {device}, like the first argument")
    if sizes and sizes[-1] > 1 and tensor.stride(-1) != 1:
        raise KernelArgumentError(
            name, got=f"a tensor with strides {list(tensor.stride())}", expected="contiguous in its last dimension"
        )


def check_positive(name: str, value: float) -> None:
    """Check that a number is above zero (and not NaN)."""
    if not value > 0:
        raise KernelArgumentError(name, got=value, expected="above 0")
