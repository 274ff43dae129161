"""store_kv: exact copies into the slots named, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.store_kv import store_kv, store_kv_ref
from deepinfer_kernels.testing.generators import make_generator, make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical


def make_case(num_tokens, num_kv_heads, head_dim, dtype=torch.float32, cache_dtype=None, block_size=16):
    k, v = (make_normal(num_tokens, num_kv_heads, head_dim, dtype=dtype, seed=seed) for seed in (1, 2))
    num_blocks = -(-num_tokens // block_size) + 2
    slots = torch.randperm(num_blocks * block_size, generator=make_generator(3))[:num_tokens]
    cache = torch.full((num_blocks, block_size, num_kv_heads, head_dim), 7.0, dtype=cache_dtype or dtype)
    return k, v, cache, cache.clone(), slots


def test_reference_writes_each_row_to_its_slot():
    k, v, k_cache, v_cache, slots = make_case(21, 3, 8)
    store_kv_ref(k, v, k_cache, v_cache, slots)
    for cache, rows in ((k_cache, k), (v_cache, v)):
        flat = cache.flatten(0, 1)
        for token, slot in enumerate(slots.tolist()):
            assert torch.equal(flat[slot], rows[token])
        untouched = torch.ones(flat.shape[0], dtype=torch.bool)
        untouched[slots] = False
        assert (flat[untouched] == 7.0).all()


@pytest.mark.parametrize("shape", [(0, 1, 64), (1, 1, 64), (7, 3, 64), (33, 8, 128), (5, 5, 80), (3, 2, 96)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_kernel_equals_reference(shape, dtype):
    k, v, k_cache, v_cache, slots = make_case(*shape, dtype=dtype)
    expected_k, expected_v = k_cache.clone(), v_cache.clone()
    store_kv_ref(k, v, expected_k, expected_v, slots)
    store_kv(k, v, k_cache, v_cache, slots.int())
    assert_identical(k_cache, expected_k)
    assert_identical(v_cache, expected_v)


@pytest.mark.parametrize(
    ("dtype", "cache_dtype"),
    [
        (torch.float32, torch.float16),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.bfloat16),
        (torch.float32, torch.bfloat16),
    ],
)
def test_cache_of_another_dtype(dtype, cache_dtype):
    k, v, k_cache, v_cache, slots = make_case(9, 2, 64, dtype=dtype, cache_dtype=cache_dtype)
    expected_k, expected_v = k_cache.clone(), v_cache.clone()
    store_kv_ref(k, v, expected_k, expected_v, slots)
    store_kv(k, v, k_cache, v_cache, slots)
    assert_close(k_cache, expected_k)
    assert_close(v_cache, expected_v)


def test_negative_slots_store_nothing():
    k, v, k_cache, v_cache, slots = make_case(6, 2, 64)
    slots[[0, 3]] = torch.tensor([-1, -5])
    expected_k, expected_v = k_cache.clone(), v_cache.clone()
    store_kv_ref(k, v, expected_k, expected_v, slots)
    store_kv(k, v, k_cache, v_cache, slots)
    assert_identical(k_cache, expected_k)
    assert_identical(v_cache, expected_v)
    assert int((k_cache != 7.0).any(dim=-1).sum()) == 4 * 2


def test_slot_beyond_the_cache():
    k, v, k_cache, v_cache, _ = make_case(1, 2, 64)
    before = k_cache.clone()
    slots = torch.tensor([k_cache.shape[0] * k_cache.shape[1]])
    with pytest.raises(KernelArgumentError, match=r"^slot_mapping must be below 48"):
        store_kv_ref(k, v, k_cache, v_cache, slots)
    store_kv(k, v, k_cache, v_cache, slots)
    assert_identical(k_cache, before)


def test_strided_rows_and_a_cache_inside_a_larger_one():
    k, v, _, _, slots = make_case(7, 3, 64)
    layers = torch.full((2, 3, 16, 3, 64), 7.0)  # k and v interleaved in one buffer, as a cache of both may be
    k_cache, v_cache = layers[0], layers[1]
    expected = layers.clone()
    store_kv_ref(k, v, expected[0], expected[1], slots)
    store_kv(make_strided(k), make_strided(v), k_cache, v_cache, slots)
    assert_identical(layers, expected)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("k", {"k": torch.zeros(2, 64)}),
        ("v", {"v": torch.zeros(2, 3, 63)}),
        ("v", {"v": torch.zeros(2, 3, 64, dtype=torch.float16)}),
        ("k_cache", {"k_cache": torch.zeros(4, 16, 2, 64)}),
        ("v_cache", {"v_cache": torch.zeros(4, 16, 3, 64, dtype=torch.float16)}),
        ("v_cache", {"v_cache": torch.zeros(8, 16, 3, 64)[::2]}),
        ("slot_mapping", {"slot_mapping": torch.zeros(3, dtype=torch.int64)}),
        ("slot_mapping", {"slot_mapping": torch.zeros(2)}),
    ],
)
def test_argument_errors(name, change):
    arguments = {
        "k": torch.zeros(2, 3, 64),
        "v": torch.zeros(2, 3, 64),
        "k_cache": torch.zeros(4, 16, 3, 64),
        "v_cache": torch.zeros(4, 16, 3, 64),
        "slot_mapping": torch.zeros(2, dtype=torch.int64),
    }
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        store_kv(**(arguments | change))
