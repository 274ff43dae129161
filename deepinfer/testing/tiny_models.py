"""Small models with random weights: configurations of every family, tensors of every storage type. No torch here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepinfer.config import ModelConfig
from deepinfer.loader.checkpoint import RawTensor
from deepinfer.loader.gguf_file import BLOCK_TYPES
from deepinfer.loader.weight_map import expected_shapes

FAMILIES: Final = ("llama", "mistral", "qwen2", "qwen3")

_BLOCKS: Final = {name: (elements, num_bytes) for name, elements, num_bytes in BLOCK_TYPES.values()}
# Byte offsets of the float16 scales (and minima) in a block, and what a scale is multiplied with at most.
_SCALE_OFFSETS: Final = {
    "q4_0": ((0,), 8),
    "q4_1": ((0, 2), 15),
    "q8_0": ((0,), 127),
    "q4_k": ((0, 2), 15 * 63),
    "q5_k": ((0, 2), 31 * 63),
    "q6_k": ((208,), 32 * 127),
}


def make_tiny_config(family: str, **changes: Any) -> ModelConfig:
    """A model of two layers and under a million parameters; row lengths are multiples of 256 for the K types.

    Args:
        family: one of FAMILIES; "mistral" has a sliding window of 24 positions, "qwen3" heads that do not add up to
            the hidden size.
        changes: fields of ModelConfig to set otherwise.
    """
    base = ModelConfig(
        architecture=family,
        vocab_size=272,
        hidden_size=256,
        intermediate_size=512,
        num_layers=2,
        num_qo_heads=8,
        num_kv_heads=2,
        head_dim=64 if family == "qwen3" else 32,
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=family == "qwen2",
        attention_bias=family == "qwen2",
        qk_norm=family == "qwen3",
        sliding_window=24 if family == "mistral" else None,
        eos_token_ids=(257,),
        bos_token_id=256,
    )
    return replace(base, **changes)


def make_random_tensors(config: ModelConfig, storage: str, *, seed: int = 0) -> dict[str, RawTensor]:
    """Random weights of about unit gain by canonical name; vectors are float32, matrices of the given storage."""
    rng = np.random.default_rng(seed)
    tensors: dict[str, RawTensor] = {}
    for name, shape in expected_shapes(config).items():
        if len(shape) == 1:
            is_norm = name.endswith("norm")
            values = (1.0 if is_norm else 0.0) + 0.2 * rng.standard_normal(shape, np.float32)
            data, stored_as = values.astype(np.float32).view(np.uint8), "f32"
        else:
            scale = 1.0 if name == "embed_tokens" else 1.0 / math.sqrt(shape[1])
            data, stored_as = make_random_blocks(rng, storage, shape, scale=scale), storage
        tensors[name] = RawTensor(name=name, shape=shape, storage=stored_as, data=data)
    return tensors


def make_random_blocks(
    rng: np.random.Generator, storage: str, shape: tuple[int, ...], *, scale: float
) -> NDArray[np.uint8]:
    """Bytes of a random tensor whose numbers have about the given size.

    Block types get random bytes with scales of both signs; every bit pattern of a block is thus met.
    """
    if storage in ("f32", "f16", "bf16"):
        values = (scale * rng.standard_normal(shape)).astype(np.float32)
        if storage == "bf16":
            return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16).reshape(-1).view(np.uint8)
        return values.astype(np.float16 if storage == "f16" else np.float32).reshape(-1).view(np.uint8)
    elements, num_bytes = _BLOCKS[storage]
    num_blocks = math.prod(shape) // elements
    blocks = rng.integers(0, 256, (num_blocks, num_bytes), np.uint8)
    offsets, largest = _SCALE_OFFSETS[storage]
    for offset in offsets:
        factors = rng.uniform(1.0, 3.0, num_blocks) * rng.choice((-1.0, 1.0), num_blocks) * scale / largest
        # The minimum of a q4_1 block is added as it is, those of the K types are multiplied with 6-bit numbers.
        factors *= largest / 2 if storage == "q4_1" and offset else 1.0
        blocks[:, offset : offset + 2] = factors.astype(np.float16).view(np.uint8).reshape(num_blocks, 2)
    return blocks.reshape(-1)
