"""SwiGLU feed-forward layer."""

from __future__ import annotations

import torch
from torch import nn

from deepinfer import ops
from deepinfer.config import ModelConfig
from deepinfer.layers.linear import Linear


class MLP(nn.Module):
    """down(silu(gate(x)) * up(x)); gate and up are one matrix, gate rows first."""

    def __init__(self, config: ModelConfig, *, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_up_proj = Linear(hidden, 2 * inner, bias=False, dtype=dtype, device=device)
        self.down_proj = Linear(inner, hidden, bias=False, dtype=dtype, device=device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        output: torch.Tensor = self.down_proj(ops.silu_and_mul(self.gate_up_proj(x)))
        return output
