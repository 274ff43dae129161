"""Gated activation of SwiGLU (Shazeer 2020, arXiv:2002.05202).

    y = silu(gate) * up,   silu(g) = g / (1 + exp(-g)),   gate_up = [gate | up]

Shapes: gate_up [T, 2 I] -> y [T, I]. Dtypes: float32, float16, bfloat16.
Numerics: float32 inside, one rounding at the store.
Bytes moved: 1.5 * gate_up.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import cdiv, device_guard, row_config


def silu_and_mul_ref(gate_up: torch.Tensor) -> torch.Tensor:
    """Torch reference of `silu_and_mul`."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up).to(gate_up.dtype)


@jit
def _silu_and_mul_kernel(
    gate_up_ptr: tl.tensor,
    y_ptr: tl.tensor,
    width: tl.tensor,
    stride_gt: tl.tensor,
    BLOCK_I: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    inside = columns < width
    gate_row = gate_up_ptr + row * stride_gt
    gate = tl.load(gate_row + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_row + width + columns, mask=inside, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(y_ptr + row * width + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """Return silu(first half) * second half of each row.

    Args:
        gate_up: [T, 2 I] fp32|fp16|bf16, contiguous last dim; T may be 0.

    Returns:
        A new contiguous [T, I] tensor of the same dtype. NaNs stay where they are.

    Raises:
        KernelArgumentError: the argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_tensor("gate_up", gate_up, shape=("T", "2 I"), dtypes=FLOAT_DTYPES)
    num_rows, double_width = gate_up.shape
    if double_width % 2 or double_width == 0:
        raise KernelArgumentError("gate_up", got=f"{double_width} wide", expected="of even, positive width")
    width = double_width // 2
    y = torch.empty((num_rows, width), dtype=gate_up.dtype, device=gate_up.device)
    if num_rows == 0:
        return y
    config = row_config(width, max_block=2048)
    with device_guard(gate_up):
        _silu_and_mul_kernel[(num_rows, cdiv(width, config.block))](
            gate_up, y, width, gate_up.stride(0), BLOCK_I=config.block, **config.options()
        )
    return y
