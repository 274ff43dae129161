"""Linear layer: y = x @ W.T + b."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Linear(nn.Module):
    """Weight [out, in] and optional bias [out], uninitialised until loaded; no gradients."""

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features, dtype=dtype, device=device), False)
        self.bias = nn.Parameter(torch.empty(out_features, dtype=dtype, device=device), False) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[T, in] -> [T, out]."""
        return functional.linear(x, self.weight, self.bias)
