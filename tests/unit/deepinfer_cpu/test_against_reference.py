"""Logits against a float64 model, over families, storages and odd sizes.

The bound is on the root mean square of the error over that of the logits. The reference rounds keys and values to half
precision, too: where a rounding falls the other way, 1e-5 remains. Activations of 15 bits leave about 2e-4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepinfer.config import RopeScaling
from deepinfer.testing.reference_model import compute_reference_logits
from deepinfer.testing.tiny_models import FAMILIES, make_random_tensors, make_tiny_config

MAX_RELATIVE_ERROR = 1e-3
MAX_FLOAT_ERROR = 2e-4
MAX_ERROR_OF_8_BITS = 0.05
STORAGES = ("f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q4_k", "q5_k", "q6_k")


def random_ids(config, count, seed=7):
    return np.random.default_rng(seed).integers(0, config.vocab_size, count).tolist()


def relative_error(got, expected):
    return np.sqrt(np.mean((got - expected) ** 2)) / np.sqrt(np.mean(expected**2))


def check(make_driver, config, storage, *, num_tokens=33, chunk=1000, **options):
    tensors = make_random_tensors(config, storage)
    token_ids = random_ids(config, num_tokens)
    got = make_driver(config, tensors, **options).prefill(0, token_ids, chunk)
    expected = compute_reference_logits(config, tensors, token_ids, kv_dtype=np.float16)
    is_float = storage in ("f32", "f16", "bf16")
    assert relative_error(got, expected) < (MAX_FLOAT_ERROR if is_float else MAX_RELATIVE_ERROR)


@pytest.mark.parametrize("storage", STORAGES)
def test_storages(make_driver, storage):
    check(make_driver, make_tiny_config("llama"), storage)


@pytest.mark.parametrize("storage", ["q4_0", "q4_1", "q4_k", "q5_k", "q6_k", "q8_0"])
@pytest.mark.parametrize("num_tokens", [1, 5, 33])
@pytest.mark.parametrize("forms", [{"activations": "fast"}, {"kv_storage": "int8"}])
def test_forms_of_fewer_bits(make_driver, storage, num_tokens, forms):
    """8 bits: 1/254 of the largest of 32 activations, or of a key or value, is lost at most."""
    config = make_tiny_config("llama")
    tensors = make_random_tensors(config, storage)
    token_ids = random_ids(config, num_tokens)
    got = make_driver(config, tensors, **forms).prefill(0, token_ids, 16)
    expected = compute_reference_logits(config, tensors, token_ids, kv_dtype=np.float16)
    assert relative_error(got, expected) < MAX_ERROR_OF_8_BITS


@pytest.mark.parametrize("family", FAMILIES)
def test_families(make_driver, family):
    check(make_driver, make_tiny_config(family), "q8_0", num_tokens=50)


@pytest.mark.parametrize("num_tokens", [1, 2, 3, 5, 15, 16, 17, 31])
def test_numbers_of_rows(make_driver, num_tokens):
    check(make_driver, make_tiny_config("llama", hidden_size=96, intermediate_size=160), "q4_1", num_tokens=num_tokens)


@pytest.mark.parametrize("head_dim", [16, 64, 80, 96, 128])
@pytest.mark.parametrize(("num_qo_heads", "num_kv_heads"), [(2, 2), (6, 2), (8, 1)])
def test_heads(make_driver, head_dim, num_qo_heads, num_kv_heads):
    config = make_tiny_config(
        "qwen3", head_dim=head_dim, num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, hidden_size=64,
        intermediate_size=32,
    )  # fmt: skip
    check(make_driver, config, "q8_0", num_tokens=21, chunk=9)


@pytest.mark.parametrize("chunk", [1, 3, 64, 1000])
def test_long_contexts_in_chunks(make_driver, chunk):
    """More than two attention chunks of 256 positions."""
    config = make_tiny_config("llama", hidden_size=64, intermediate_size=64, num_qo_heads=4)
    check(make_driver, config, "q8_0", num_tokens=530, chunk=chunk, num_threads=2)


@pytest.mark.parametrize("block_size", [16, 64, 256])
def test_sliding_window_over_chunk_borders(make_driver, block_size):
    config = make_tiny_config("mistral", hidden_size=64, intermediate_size=64, sliding_window=40)
    check(make_driver, config, "q8_0", num_tokens=300, chunk=37, block_size=block_size)


@pytest.mark.parametrize(
    "scaling",
    [
        RopeScaling(kind="linear", factor=4.0),
        RopeScaling(kind="llama3", factor=8.0, original_max_position_embeddings=64),
        RopeScaling(kind="llama3", frequency_factors=tuple(1.0 + i for i in range(16))),
    ],
)
def test_scaled_rotation(make_driver, scaling):
    check(make_driver, make_tiny_config("llama", rope_scaling=scaling), "q8_0", num_tokens=40)


def test_interleaved_heads(make_driver):
    """Rows stored for rotation of neighbouring pairs, as GGUF files of this family have them."""
    config = make_tiny_config("llama")
    tensors = make_random_tensors(config, "q4_0")
    for name, tensor in tensors.items():
        if name.endswith(("q_proj", "k_proj")):
            num_heads = config.num_qo_heads if name.endswith("q_proj") else config.num_kv_heads
            tensors[name] = replace(tensor, num_interleaved_heads=num_heads)
    token_ids = random_ids(config, 20)
    got = make_driver(config, tensors).prefill(0, token_ids, 20)
    expected = compute_reference_logits(config, tensors, token_ids, kv_dtype=np.float16)
    assert relative_error(got, expected) < MAX_RELATIVE_ERROR
