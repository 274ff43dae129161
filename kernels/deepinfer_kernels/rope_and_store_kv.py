"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), half-split form, fused with the store of k and v.

With R = 2 * cos.shape[1] <= head_dim, for the first R columns of each head of q and k at position p:

    y[:R/2]  = x[:R/2] * cos[p] - x[R/2:R] * sin[p]
    y[R/2:R] = x[R/2:R] * cos[p] + x[:R/2] * sin[p]

Columns from R on pass unchanged. The rotated k and the plain v go to the paged cache (see `store_kv`).
Shapes: q [T, num_qo_heads, head_dim]; k, v [T, num_kv_heads, head_dim]; cos, sin [max_position, R/2] float32;
positions, slot_mapping [T]. Numerics: float32 inside, one rounding at each store.
Bytes moved: 2 * q.nbytes + 2 * (k.nbytes + v.nbytes) when the cache has the same dtype, plus T * R * 4 of the tables.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, INDEX_DTYPES, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, cdiv, device_guard, next_power_of_two
from deepinfer_kernels.store_kv import check_kv_arguments, store_kv_ref

HEADS_PER_PROGRAM = 16


def rope_and_store_kv_ref(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> torch.Tensor:
    """Torch reference of `rope_and_store_kv`; raises IndexError for a position beyond the tables."""
    cos_rows = cos[positions.long()][:, None, :]
    sin_rows = sin[positions.long()][:, None, :]
    store_kv_ref(_rotate(k, cos_rows, sin_rows), v, k_cache, v_cache, slot_mapping)
    return _rotate(q, cos_rows, sin_rows).to(q.dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = cos.shape[-1]
    values = x.float()
    first, second = values[..., :half], values[..., half : 2 * half]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, values[..., 2 * half :]), dim=-1)


@jit
def _rotate_heads(
    x_row: tl.tensor,
    y_row: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    heads: tl.tensor,
    num_heads: tl.tensor,
    half: tl.tensor,
    head_dim: tl.tensor,
    stride_xh: tl.tensor,
    stride_yh: tl.tensor,
    BLOCK_HALF: tl.constexpr,
    BLOCK_TAIL: tl.constexpr,
) -> None:
    columns = tl.arange(0, BLOCK_HALF)[None, :]
    inside = (heads < num_heads) & (columns < half)
    source = x_row + heads * stride_xh + columns
    target = y_row + heads * stride_yh + columns
    first = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(source + half, mask=inside, other=0.0).to(tl.float32)
    out_dtype: tl.constexpr = y_row.dtype.element_ty
    tl.store(target, (first * cos - second * sin).to(out_dtype), mask=inside)
    tl.store(target + half, (second * cos + first * sin).to(out_dtype), mask=inside)
    if BLOCK_TAIL > 0:
        tail = 2 * half + tl.arange(0, BLOCK_TAIL)[None, :]
        tail_inside = (heads < num_heads) & (tail < head_dim)
        rest = tl.load(x_row + heads * stride_xh + tail, mask=tail_inside, other=0.0).to(tl.float32)
        tl.store(y_row + heads * stride_yh + tail, rest.to(out_dtype), mask=tail_inside)


@jit
def _rope_and_store_kv_kernel(
    q_ptr: tl.tensor,
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    positions_ptr: tl.tensor,
    cos_ptr: tl.tensor,
    sin_ptr: tl.tensor,
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    slot_mapping_ptr: tl.tensor,
    y_ptr: tl.tensor,
    num_slots: tl.tensor,
    block_size: tl.tensor,
    num_qo_heads: tl.tensor,
    num_kv_heads: tl.tensor,
    half: tl.tensor,
    head_dim: tl.tensor,
    max_position: tl.tensor,
    num_q_tiles: tl.tensor,
    stride_qt: tl.tensor,
    stride_qh: tl.tensor,
    stride_kt: tl.tensor,
    stride_kh: tl.tensor,
    stride_vt: tl.tensor,
    stride_vh: tl.tensor,
    stride_table: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    stride_ch: tl.tensor,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
    BLOCK_TAIL: tl.constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    position = tl.load(positions_ptr + token).to(tl.int64)
    angles = tl.arange(0, BLOCK_HALF)
    num_known = tl.where((position >= 0) & (position < max_position), half, 0)
    known = angles < num_known
    cos = tl.load(cos_ptr + position * stride_table + angles, mask=known, other=float("nan"))[None, :]
    sin = tl.load(sin_ptr + position * stride_table + angles, mask=known, other=float("nan"))[None, :]
    if tile < num_q_tiles:
        heads = tile * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
        y_row = y_ptr + token * num_qo_heads * head_dim
        _rotate_heads(
            q_ptr + token * stride_qt, y_row, cos, sin, heads, num_qo_heads, half, head_dim, stride_qh, head_dim,
            BLOCK_HALF, BLOCK_TAIL,
        )  # fmt: skip
    else:
        slot = tl.load(slot_mapping_ptr + token).to(tl.int64)
        if (slot >= 0) & (slot < num_slots):
            heads = (tile - num_q_tiles) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
            offset = (slot // block_size) * stride_cb + (slot % block_size) * stride_cs
            _rotate_heads(
                k_ptr + token * stride_kt, k_cache_ptr + offset, cos, sin, heads, num_kv_heads, half, head_dim,
                stride_kh, stride_ch, BLOCK_HALF, BLOCK_TAIL,
            )  # fmt: skip
            columns = tl.arange(0, BLOCK_D)[None, :]
            inside = (heads < num_kv_heads) & (columns < head_dim)
            v = tl.load(v_ptr + token * stride_vt + heads * stride_vh + columns, mask=inside, other=0.0).to(tl.float32)
            target = v_cache_ptr + offset + heads * stride_ch + columns
            tl.store(target, v.to(v_cache_ptr.dtype.element_ty), mask=inside)


def rope_and_store_kv(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> torch.Tensor:
    """Rotate q and k, store rotated k and plain v in the cache, return rotated q.

    Args:
        q: [T, num_qo_heads, head_dim] fp32|fp16|bf16, contiguous last dim (a slice of a fused projection will do).
        k, v: [T, num_kv_heads, head_dim], dtype of q, contiguous last dim; not changed.
        positions: [T] int32|int64; a position beyond the tables makes that token's q and k NaN (the reference raises).
        cos, sin: [max_position, R/2] fp32, contiguous, R <= head_dim.
        k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim] fp32|fp16|bf16, equal strides; **mutated**.
        slot_mapping: [T] int32|int64; a negative slot stores nothing; slots must be distinct.

    Returns:
        Rotated q, a new contiguous [T, num_qo_heads, head_dim] tensor of q's dtype. T may be 0.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_tensor("q", q, shape=("T", "num_qo_heads", "head_dim"), dtypes=FLOAT_DTYPES)
    num_tokens, num_qo_heads, head_dim = q.shape
    check_tensor("k", k, shape=(num_tokens, "num_kv_heads", head_dim), dtypes=(q.dtype,), device=q.device)
    check_kv_arguments(k, v, k_cache, v_cache, slot_mapping)
    check_tensor("positions", positions, shape=(num_tokens,), dtypes=INDEX_DTYPES, device=q.device)
    check_tensor("cos", cos, shape=("max_position", "R/2"), dtypes=(torch.float32,), device=q.device)
    check_tensor("sin", sin, shape=tuple(cos.shape), dtypes=(torch.float32,), device=q.device)
    half = cos.shape[1]
    if not 1 <= half <= head_dim // 2:
        raise KernelArgumentError("cos", got=f"{half} wide", expected=f"1 to head_dim / 2 = {head_dim // 2} wide")
    if sin.stride() != cos.stride():
        raise KernelArgumentError("sin", got=f"strides {sin.stride()}", expected=f"strides {cos.stride()}, like cos")
    y = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if num_tokens == 0:
        return y
    num_kv_heads = k.shape[1]
    num_blocks, block_size = k_cache.shape[:2]
    num_q_tiles = cdiv(num_qo_heads, HEADS_PER_PROGRAM)
    tail = head_dim - 2 * half
    with device_guard(q):
        _rope_and_store_kv_kernel[(num_tokens, num_q_tiles + cdiv(num_kv_heads, HEADS_PER_PROGRAM))](
            q, k, v, positions, cos, sin, k_cache, v_cache, slot_mapping, y,
            num_blocks * block_size, block_size, num_qo_heads, num_kv_heads, half, head_dim, cos.shape[0], num_q_tiles,
            q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1), cos.stride(0),
            *k_cache.stride()[:3],
            BLOCK_H=HEADS_PER_PROGRAM, BLOCK_D=max(next_power_of_two(head_dim), 16),
            BLOCK_HALF=max(next_power_of_two(half), 16), BLOCK_TAIL=max(next_power_of_two(tail), 16) if tail else 0,
            num_warps=4, **COMMON_OPTIONS,
        )  # fmt: skip
    return y
