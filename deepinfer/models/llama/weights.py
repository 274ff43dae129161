"""Where each checkpoint tensor goes in a LlamaModel."""

from __future__ import annotations

import torch

from deepinfer.models.llama.model import LlamaLayer, LlamaModel


def weight_destinations(model: LlamaModel) -> dict[str, torch.Tensor]:
    """Canonical tensor name -> the memory it fills, a parameter or a slice of rows of a fused one."""
    destinations: dict[str, torch.Tensor] = {
        "embed_tokens": model.embed_tokens.data,
        "final_norm": model.final_norm.weight.data,
    }
    if model.lm_head is not None:
        destinations["lm_head"] = model.lm_head.weight.data
    for index, layer in enumerate(model.layers):
        if not isinstance(layer, LlamaLayer):
            raise TypeError(f"layer {index} is a {type(layer).__name__}")
        destinations |= {f"layers.{index}.{name}": tensor for name, tensor in _layer_destinations(layer).items()}
    return destinations


def _layer_destinations(layer: LlamaLayer) -> dict[str, torch.Tensor]:
    attention, mlp = layer.attention, layer.mlp
    destinations = {
        "attn_norm": layer.attn_norm.weight.data,
        "o_proj": attention.o_proj.weight.data,
        "mlp_norm": layer.mlp_norm.weight.data,
        "down_proj": mlp.down_proj.weight.data,
    }
    qkv_sizes = [attention.qo_size, attention.kv_size, attention.kv_size]
    qkv_names = ("q", "k", "v")
    for name, rows in zip(qkv_names, torch.split(attention.qkv_proj.weight.data, qkv_sizes), strict=True):
        destinations[f"{name}_proj"] = rows
    if attention.qkv_proj.bias is not None:
        for name, rows in zip(qkv_names, torch.split(attention.qkv_proj.bias.data, qkv_sizes), strict=True):
            destinations[f"{name}_bias"] = rows
    destinations["gate_proj"], destinations["up_proj"] = mlp.gate_up_proj.weight.data.chunk(2)
    if attention.q_norm is not None and attention.k_norm is not None:
        destinations["q_norm"] = attention.q_norm.weight.data
        destinations["k_norm"] = attention.k_norm.weight.data
    return destinations
