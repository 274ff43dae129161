"""Tables of cosines and sines for rotary positions."""

from __future__ import annotations

import torch

from deepinfer.config import ModelConfig
from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies


class RotaryTable:
    """cos and sin of position * frequency: float32 [num_positions, head_dim / 2] each, shared by all layers."""

    def __init__(self, config: ModelConfig, *, num_positions: int, device: torch.device) -> None:
        frequencies = torch.from_numpy(compute_inverse_frequencies(config))
        angles = torch.outer(torch.arange(num_positions, dtype=torch.float32), frequencies)
        self.cos = angles.cos().to(device)
        self.sin = angles.sin().to(device)
