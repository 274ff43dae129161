"""rope_and_store_kv against rotation as complex multiplication, and its kernel against the reference."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.rope_and_store_kv import rope_and_store_kv, rope_and_store_kv_ref
from deepinfer_kernels.testing.generators import make_generator, make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

MAX_POSITION = 97


def make_case(num_tokens, num_qo_heads, num_kv_heads, head_dim, *, half=None, dtype=torch.float32, cache_dtype=None):
    half = head_dim // 2 if half is None else half
    q = make_normal(num_tokens, num_qo_heads, head_dim, dtype=dtype, seed=1)
    k, v = (make_normal(num_tokens, num_kv_heads, head_dim, dtype=dtype, seed=seed) for seed in (2, 3))
    generator = make_generator(4)
    positions = torch.randint(0, MAX_POSITION, (num_tokens,), generator=generator)
    angles = torch.outer(torch.arange(MAX_POSITION).float(), 1000.0 ** (-torch.arange(half).float() / half))
    num_blocks = -(-num_tokens // 16) + 1
    slots = torch.randperm(num_blocks * 16, generator=generator)[:num_tokens]
    cache = torch.full((2, num_blocks, 16, num_kv_heads, head_dim), 7.0, dtype=cache_dtype or dtype)
    return [q, k, v, positions, angles.cos(), angles.sin(), cache[0], cache[1], slots]


def run_both(arguments):
    """Run reference and kernel on caches of their own; return (q, k_cache, v_cache) of each."""
    results = []
    for function in (rope_and_store_kv_ref, rope_and_store_kv):
        own = [*arguments[:6], arguments[6].clone(), arguments[7].clone(), arguments[8]]
        results.append((function(*own), own[6], own[7]))
    return results


def test_reference_is_a_complex_rotation():
    arguments = make_case(11, 4, 2, 64)
    q, k, v, positions, cos, sin, k_cache, v_cache, slots = arguments
    rotated = rope_and_store_kv_ref(*arguments)
    turn = torch.complex(cos.double(), sin.double())[positions][:, None]
    for got, x in ((rotated, q), (k_cache.flatten(0, 1)[slots], k)):
        expected = torch.complex(x[..., :32].double(), x[..., 32:].double()) * turn
        torch.testing.assert_close(got.double(), torch.cat((expected.real, expected.imag), -1), rtol=1e-5, atol=1e-6)
    assert torch.equal(v_cache.flatten(0, 1)[slots], v)


CASES = [(0, 3, 1, 64), (1, 9, 3, 64), (7, 8, 1, 128), (17, 3, 3, 80), (5, 4, 2, 96), (3, 40, 20, 64)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_kernel_equals_reference(case, dtype):
    arguments = make_case(*case, dtype=dtype)
    inputs = [arguments[0].clone(), arguments[1].clone()]
    expected, got = run_both(arguments)
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b)
    assert_identical(arguments[0], inputs[0])
    assert_identical(arguments[1], inputs[1])


@pytest.mark.parametrize("half", [1, 16, 20])
def test_partial_rotation_passes_the_rest(half):
    arguments = make_case(5, 3, 1, 64, half=half)
    expected, got = run_both(arguments)
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b)
    assert torch.equal(got[0][..., 2 * half :], arguments[0][..., 2 * half :])


@pytest.mark.parametrize("cache_dtype", [torch.float16, torch.bfloat16], ids=str)
def test_cache_of_another_dtype(cache_dtype):
    expected, got = run_both(make_case(5, 3, 1, 64, cache_dtype=cache_dtype))
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b)


def test_slices_of_a_fused_projection_and_int32_indices():
    arguments = make_case(5, 4, 2, 64)
    q, k, v = arguments[:3]
    fused = make_strided(torch.cat((q, k, v), dim=1).flatten(1))
    parts = [part.unflatten(-1, (-1, 64)) for part in fused.split([256, 128, 128], dim=-1)]
    expected, got = run_both(arguments)
    _, sliced = run_both([*parts, arguments[3].int(), *arguments[4:8], arguments[8].int()])
    for a, b in zip(sliced, got, strict=True):
        assert_identical(a, b)
    assert_close(sliced[0], expected[0])


def test_negative_slot_rotates_q_and_stores_nothing():
    arguments = make_case(4, 3, 1, 64)
    arguments[8][2] = -1
    expected, got = run_both(arguments)
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b)
    assert int((got[1] != 7.0).any(-1).sum()) == 3


@pytest.mark.parametrize("position", [-1, MAX_POSITION])
def test_position_beyond_the_tables_gives_nan_and_not_garbage(position):
    arguments = make_case(2, 3, 1, 64)
    arguments[3][1] = position
    q = rope_and_store_kv(*arguments)
    assert q[1].isnan().all()
    assert not q[0].isnan().any()
    if position > 0:
        with pytest.raises(IndexError):
            rope_and_store_kv_ref(*arguments)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("q", {0: torch.zeros(2, 192)}),
        ("k", {1: torch.zeros(2, 1, 32)}),
        ("k", {1: torch.zeros(2, 1, 64, dtype=torch.float16)}),
        ("v", {2: torch.zeros(3, 1, 64)}),
        ("positions", {3: torch.zeros(3, dtype=torch.int64)}),
        ("positions", {3: torch.zeros(2)}),
        ("cos", {4: torch.zeros(9, 32, dtype=torch.float16)}),
        ("cos", {4: torch.zeros(9, 33), 5: torch.zeros(9, 33)}),
        ("sin", {5: torch.zeros(8, 32)}),
        ("k_cache", {6: torch.zeros(2, 16, 2, 64)}),
        ("slot_mapping", {8: torch.zeros(2, 1, dtype=torch.int64)}),
    ],
)
def test_argument_errors(name, change):
    arguments = make_case(2, 3, 1, 64)
    for index, value in change.items():
        arguments[index] = value
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        rope_and_store_kv(*arguments)
