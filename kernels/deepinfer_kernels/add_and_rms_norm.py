"""Residual addition and root mean square normalisation in one pass.

    residual <- residual + x
    y = residual / sqrt(mean(residual^2) + eps) * weight

Shapes: x, residual [T, D]; weight [D]. Dtypes: float32, float16, bfloat16; x and residual alike.
Numerics: the sum is rounded to the residual's dtype first and the norm is taken of that rounded value, so the pair
equals an addition followed by `rms_norm`. Everything else in float32.
Bytes moved: 4 * x.nbytes + weight.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import check_tensor
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import device_guard, row_config
from deepinfer_kernels.rms_norm import MAX_WIDTH, check_norm_arguments, rms_norm_ref


def add_and_rms_norm_ref(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Torch reference of `add_and_rms_norm`; mutates `residual` as well."""
    residual.add_(x)
    return rms_norm_ref(residual, weight, eps)


@jit
def _add_and_rms_norm_kernel(
    x_ptr: tl.tensor,
    residual_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    y_ptr: tl.tensor,
    width: tl.tensor,
    stride_xt: tl.tensor,
    stride_rt: tl.tensor,
    eps: tl.tensor,
    BLOCK_D: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < width
    x = tl.load(x_ptr + row * stride_xt + columns, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * stride_rt + columns, mask=inside, other=0.0).to(tl.float32)
    rounded = (x + residual).to(residual_ptr.dtype.element_ty)
    tl.store(residual_ptr + row * stride_rt + columns, rounded, mask=inside)
    total = rounded.to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(total * total, axis=0) / width + eps)
    tl.store(y_ptr + row * width + columns, (total * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


def add_and_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Add `x` to `residual` in place and return the normalised sum.

    Args:
        x: [T, D] fp32|fp16|bf16, contiguous last dim, D <= 32768; T may be 0.
        residual: like `x`; **mutated**: holds the sum afterwards. Must not overlap `x`.
        weight: [D] fp32|fp16|bf16, contiguous.
        eps: added to the mean square, > 0.

    Returns:
        A new contiguous tensor of the shape and dtype of `x`. A NaN makes its whole row NaN.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_tensor("x", x, shape=("T", "D"), dtypes=(x.dtype,))
    check_norm_arguments(x, weight, eps)
    check_tensor("residual", residual, shape=tuple(x.shape), dtypes=(x.dtype,), device=x.device)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    num_rows, width = x.shape
    config = row_config(width, max_block=MAX_WIDTH)
    with device_guard(x):
        _add_and_rms_norm_kernel[(num_rows,)](
            x, residual, weight, y, width, x.stride(0), residual.stride(0), eps,
            BLOCK_D=config.block, **config.options(),
        )  # fmt: skip
    return y
