"""The model of this engine in plain numpy and double precision: the judge of every executor. Slow, no cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepinfer.config import ModelConfig
from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies
from deepinfer.loader.checkpoint import RawTensor
from deepinfer.quant.gguf_blocks import dequantize, half_split_rows

Floats = NDArray[np.float64]


def compute_reference_logits(
    config: ModelConfig,
    tensors: Mapping[str, RawTensor],
    token_ids: Sequence[int],
    *,
    kv_dtype: type[np.floating[Any]] = np.float64,
) -> NDArray[np.float64]:
    """Logits [T, V] of every position of a sequence, all in float64 except the rotary angles.

    Keys and values are rounded to `kv_dtype`, as a cache of that type would.

    The angles are formed in float32, as the models' own code does: at position 2,000 that is an error of 1e-4, which
    the weights have been trained with.
    """
    weights = {name: _dequantized(tensor) for name, tensor in tensors.items()}
    hidden = weights["embed_tokens"][list(token_ids)]
    angles = np.arange(len(token_ids), dtype=np.float32)[:, None] * compute_inverse_frequencies(config)[None, :]
    for index in range(config.num_layers):
        layer = {
            name.removeprefix(f"layers.{index}."): weight
            for name, weight in weights.items()
            if name.startswith(f"layers.{index}.")
        }
        normed = _rms_norm(hidden, layer["attn_norm"], config.rms_norm_eps)
        hidden = hidden + _attention(config, layer, normed, angles.astype(np.float64), kv_dtype) @ layer["o_proj"].T
        normed = _rms_norm(hidden, layer["mlp_norm"], config.rms_norm_eps)
        gate, up = normed @ layer["gate_proj"].T, normed @ layer["up_proj"].T
        hidden = hidden + (gate / (1.0 + np.exp(-gate)) * up) @ layer["down_proj"].T
    head = weights.get("lm_head", weights["embed_tokens"])
    logits: Floats = _rms_norm(hidden, weights["final_norm"], config.rms_norm_eps) @ head.T
    return logits


def _dequantized(tensor: RawTensor) -> Floats:
    values = dequantize(tensor.data, tensor.storage, tensor.shape)
    if tensor.num_interleaved_heads:
        values = half_split_rows(values, tensor.num_interleaved_heads)
    return values.astype(np.float64)


def _rms_norm(x: Floats, weight: Floats, eps: float) -> Floats:
    normed: Floats = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight
    return normed


def _attention(
    config: ModelConfig, layer: Mapping[str, Floats], x: Floats, angles: Floats, kv_dtype: type[np.floating[Any]]
) -> Floats:
    """Attention [T, query heads * head_dim] before the output projection."""
    num_rows = x.shape[0]

    def project(name: str) -> Floats:
        heads = x @ layer[f"{name}_proj"].T
        if f"{name}_bias" in layer:
            heads = heads + layer[f"{name}_bias"]
        heads = heads.reshape(num_rows, -1, config.head_dim)
        return _rms_norm(heads, layer[f"{name}_norm"], config.rms_norm_eps) if f"{name}_norm" in layer else heads

    queries, keys, values = _rotate(project("q"), angles), _rotate(project("k"), angles), project("v")
    keys, values = (kept.astype(kv_dtype).astype(np.float64) for kept in (keys, values))
    group_size = config.num_qo_heads // config.num_kv_heads
    keys, values = np.repeat(keys, group_size, axis=1), np.repeat(values, group_size, axis=1)
    scores = np.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(config.head_dim)
    distance = np.arange(num_rows)[:, None] - np.arange(num_rows)[None, :]
    is_hidden = (distance < 0) | (distance >= (config.sliding_window or num_rows))
    scores = np.where(is_hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    attended: Floats = np.einsum("hqk,khd->qhd", weights, values).reshape(num_rows, -1)
    return attended


def _rotate(heads: Floats, angles: Floats) -> Floats:
    first, second = np.split(heads, 2, axis=-1)
    cosines, sines = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
