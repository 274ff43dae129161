"""Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467).

    y = x / sqrt(mean(x^2) + eps) * weight

Shapes: x [T, D] or [T, H, D]; weight [D]. Dtypes: float32, float16, bfloat16, weight of any of them.
Numerics: everything in float32, one rounding at the store. The sum of squares is one tree over a row, so a row's bits
do not depend on the other rows.
Bytes moved: 2 * x.nbytes + weight.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, check_positive, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import device_guard, row_config

MAX_WIDTH = 32768


def rms_norm_ref(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Torch reference of `rms_norm`."""
    values = x.float()
    scale = torch.rsqrt(values.square().mean(dim=-1, keepdim=True) + eps)
    return (values * scale * weight.float()).to(x.dtype)


@jit
def _rms_norm_kernel(
    x_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    y_ptr: tl.tensor,
    num_heads: tl.tensor,
    width: tl.tensor,
    stride_xt: tl.tensor,
    stride_xh: tl.tensor,
    eps: tl.tensor,
    BLOCK_D: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < width
    x_row = x_ptr + (row // num_heads) * stride_xt + (row % num_heads) * stride_xh
    x = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / width + eps)
    tl.store(y_ptr + row * width + columns, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalise each row of `x` over its last dimension.

    Args:
        x: [T, D] or [T, H, D] fp32|fp16|bf16, contiguous last dim, D <= 32768; T may be 0.
        weight: [D] fp32|fp16|bf16, contiguous.
        eps: added to the mean square, > 0.

    Returns:
        A new contiguous tensor of the shape and dtype of `x`. A NaN makes its whole row NaN.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_norm_arguments(x, weight, eps)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    width = x.shape[-1]
    num_heads = x.shape[1] if x.dim() == 3 else 1
    config = row_config(width, max_block=MAX_WIDTH)
    with device_guard(x):
        _rms_norm_kernel[(x.numel() // width,)](
            x, weight, y, num_heads, width, x.stride(0), x.stride(1) if x.dim() == 3 else 0, eps,
            BLOCK_D=config.block, **config.options(),
        )  # fmt: skip
    return y


def check_norm_arguments(x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Raise KernelArgumentError unless the arguments are as `rms_norm` describes."""
    has_heads = isinstance(x, torch.Tensor) and x.dim() == 3
    check_tensor("x", x, shape=("T", "H", "D") if has_heads else ("T", "D"), dtypes=FLOAT_DTYPES)
    if not 1 <= x.shape[-1] <= MAX_WIDTH:
        raise KernelArgumentError(
            "x", got=f"{x.shape[-1]} wide", expected=f"1 to {MAX_WIDTH} wide in its last dimension"
        )
    check_tensor("weight", weight, shape=(x.shape[-1],), dtypes=FLOAT_DTYPES, device=x.device)
    check_positive("eps", eps)
