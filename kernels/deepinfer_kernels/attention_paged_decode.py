"""Decode rows of `attention_paged`: one query per request, keys and values split over programs.

A request of L visible positions is cut into at most 32 splits of equal length (at least 256 positions, a multiple of
the key tile). Each split gives a float32 partial output and its log-sum-exp (base 2); a second kernel adds them with
weights exp2(lse - max lse). This is the flash-decoding scheme (Dao, Haziza, Massa and Sizov 2023) with one difference:
the cut depends on the request's own length alone, so a row's bits are the same in every batch. One split is written
straight to `out`, with the bits that the second kernel would give.

The query heads of one KV head are the rows of a matrix product, padded to 16.
Bytes moved: K and V of the visible positions once, plus 4 * R * num_qo_heads * splits * (head_dim + 1) twice.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, cdiv, device_guard, next_power_of_two

MAX_SPLITS = 32
MIN_SPLIT_TOKENS = 256
LOG2_E = 1.4426950408889634


@jit
def _plan_splits(
    seq_len: tl.tensor,
    window: tl.tensor,
    BLOCK_N: tl.constexpr,
    MAX_SPLITS: tl.constexpr,
    MIN_SPLIT: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Return the first visible position, the first position of split 0, and the length of a split."""
    first = tl.where(window > 0, tl.maximum(seq_len - window, 0), 0)
    origin = first // BLOCK_N * BLOCK_N
    length = tl.maximum((seq_len - origin + MAX_SPLITS - 1) // MAX_SPLITS, MIN_SPLIT)
    return first, origin, (length + BLOCK_N - 1) // BLOCK_N * BLOCK_N


@jit
def locate_keys(
    table_row: tl.tensor,
    start: tl.tensor,
    inside: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> tl.tensor:
    """Return the cache offsets of positions start .. start + BLOCK_N, where `start` is a multiple of BLOCK_N."""
    if BLOCK_SIZE >= BLOCK_N:  # both are powers of two: the whole tile lies in one block
        block_id = tl.load(table_row + start // BLOCK_SIZE).to(tl.int64)
        return block_id * stride_cb + (start % BLOCK_SIZE + tl.arange(0, BLOCK_N)) * stride_cs
    positions = start + tl.arange(0, BLOCK_N)
    block_ids = tl.load(table_row + positions // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
    return block_ids * stride_cb + (positions % BLOCK_SIZE) * stride_cs


@jit
def _attention_paged_decode_kernel(
    q_ptr: tl.tensor,
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    block_table_ptr: tl.tensor,
    seq_lens_ptr: tl.tensor,
    cu_seqlens_q_ptr: tl.tensor,
    out_ptr: tl.tensor,
    partial_ptr: tl.tensor,
    lse_ptr: tl.tensor,
    scale_log2: tl.tensor,
    window: tl.tensor,
    num_qo_heads: tl.tensor,
    head_dim: tl.tensor,
    num_splits: tl.tensor,
    stride_qt: tl.tensor,
    stride_qh: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    stride_ch: tl.tensor,
    stride_br: tl.tensor,
    GROUP: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    MAX_SPLITS: tl.constexpr,
    MIN_SPLIT: tl.constexpr,
    IS_SINGLE_SPLIT: tl.constexpr,
) -> None:
    request = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    row = tl.load(cu_seqlens_q_ptr + request).to(tl.int64)
    if tl.load(cu_seqlens_q_ptr + request + 1).to(tl.int64) - row != 1:
        return
    seq_len = tl.load(seq_lens_ptr + request).to(tl.int32)
    first, origin, split_len = _plan_splits(seq_len, window, BLOCK_N, MAX_SPLITS, MIN_SPLIT)
    begin = origin + split * split_len
    end = tl.minimum(begin + split_len, seq_len)

    heads = tl.arange(0, BLOCK_H)
    columns = tl.arange(0, BLOCK_D)
    is_head = heads < GROUP
    is_column = columns < head_dim
    q_heads = kv_head * GROUP + heads
    q = tl.load(
        q_ptr + row * stride_qt + q_heads[:, None] * stride_qh + columns[None, :],
        mask=is_head[:, None] & is_column[None, :],
        other=0.0,
    )
    table_row = block_table_ptr + request * stride_br
    peak = tl.full((BLOCK_H,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    acc = tl.zeros((BLOCK_H, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        inside = positions < end
        keys = locate_keys(table_row, start, inside, stride_cb, stride_cs, BLOCK_SIZE, BLOCK_N) + kv_head * stride_ch
        k = tl.load(
            k_cache_ptr + keys[None, :] + columns[:, None], mask=inside[None, :] & is_column[:, None], other=0.0
        )
        scores = tl.dot(q, k.to(q.dtype), input_precision="ieee") * scale_log2
        # Every tile holds a visible position, so the new peak is finite.
        scores = tl.where((inside & (positions >= first))[None, :], scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        fade = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])
        total = total * fade + tl.sum(weights, axis=1)
        v = tl.load(
            v_cache_ptr + keys[:, None] + columns[None, :], mask=inside[:, None] & is_column[None, :], other=0.0
        )
        acc = acc * fade[:, None] + tl.dot(weights.to(q.dtype), v.to(q.dtype), input_precision="ieee")
        peak = new_peak

    acc = acc / tl.where(total > 0.0, total, 1.0)[:, None]
    stored = is_head[:, None] & is_column[None, :]
    if IS_SINGLE_SPLIT:
        target = (row * num_qo_heads + q_heads)[:, None] * head_dim + columns[None, :]
        tl.store(out_ptr + target, acc.to(out_ptr.dtype.element_ty), mask=stored)
    else:
        slot = (request * num_qo_heads + q_heads) * num_splits + split
        tl.store(partial_ptr + slot[:, None] * head_dim + columns[None, :], acc, mask=stored)
        tl.store(lse_ptr + slot, peak + tl.log2(tl.where(total > 0.0, total, 1.0)), mask=is_head)


@jit
def _attention_paged_combine_kernel(
    partial_ptr: tl.tensor,
    lse_ptr: tl.tensor,
    seq_lens_ptr: tl.tensor,
    cu_seqlens_q_ptr: tl.tensor,
    out_ptr: tl.tensor,
    window: tl.tensor,
    num_qo_heads: tl.tensor,
    head_dim: tl.tensor,
    num_splits: tl.tensor,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    MAX_SPLITS: tl.constexpr,
    MIN_SPLIT: tl.constexpr,
) -> None:
    request = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    row = tl.load(cu_seqlens_q_ptr + request).to(tl.int64)
    if tl.load(cu_seqlens_q_ptr + request + 1).to(tl.int64) - row != 1:
        return
    seq_len = tl.load(seq_lens_ptr + request).to(tl.int32)
    _, origin, split_len = _plan_splits(seq_len, window, BLOCK_N, MAX_SPLITS, MIN_SPLIT)
    num_used = (seq_len - origin + split_len - 1) // split_len
    splits = tl.arange(0, MAX_SPLITS)
    columns = tl.arange(0, BLOCK_D)
    is_used = splits < num_used
    slot = (request * num_qo_heads + head) * num_splits + splits
    lse = tl.load(lse_ptr + slot, mask=is_used, other=float("-inf"))
    peak = tl.where(num_used > 0, tl.max(lse, axis=0), 0.0)
    weights = tl.exp2(lse - peak)
    partial = tl.load(
        partial_ptr + slot[:, None] * head_dim + columns[None, :],
        mask=is_used[:, None] & (columns < head_dim)[None, :],
        other=0.0,
    )
    total = tl.sum(weights, axis=0)
    y = tl.sum(partial * weights[:, None], axis=0) / tl.where(num_used > 0, total, 1.0)
    target = (row * num_qo_heads + head) * head_dim + columns
    tl.store(out_ptr + target, y.to(out_ptr.dtype.element_ty), mask=columns < head_dim)


def attention_paged_decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    out: torch.Tensor,
    *,
    softmax_scale: float,
    max_seqlen_k: int,
    window: int,
) -> None:
    """Fill the rows of `out` that belong to requests with exactly one query; leave all others.

    Arguments as `attention_paged` checks them; `window` 0 means none.
    """
    num_requests = block_table.shape[0]
    num_qo_heads, head_dim = q.shape[1:]
    block_size, num_kv_heads = k_cache.shape[1:3]
    block_n = decode_tile_tokens(q.dtype)
    visible = max_seqlen_k if window == 0 else min(max_seqlen_k, window + block_n)
    num_splits = max(1, min(MAX_SPLITS, cdiv(visible, MIN_SPLIT_TOKENS)))
    is_single = num_splits == 1
    partial = lse = out
    if not is_single:
        partial = torch.empty((num_requests, num_qo_heads, num_splits, head_dim), dtype=torch.float32, device=q.device)
        lse = torch.empty((num_requests, num_qo_heads, num_splits), dtype=torch.float32, device=q.device)
    block_d = max(next_power_of_two(head_dim), 16)
    group = num_qo_heads // num_kv_heads
    with device_guard(q):
        _attention_paged_decode_kernel[(num_requests, num_kv_heads, num_splits)](
            q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q, out, partial, lse,
            softmax_scale * LOG2_E, window, num_qo_heads, head_dim, num_splits,
            q.stride(0), q.stride(1), *k_cache.stride()[:3], block_table.stride(0),
            GROUP=group, BLOCK_SIZE=block_size, BLOCK_H=max(next_power_of_two(group), 16), BLOCK_N=block_n,
            BLOCK_D=block_d, MAX_SPLITS=MAX_SPLITS, MIN_SPLIT=MIN_SPLIT_TOKENS, IS_SINGLE_SPLIT=is_single,
            num_warps=4, num_stages=3, **COMMON_OPTIONS,
        )  # fmt: skip
        if not is_single:
            _attention_paged_combine_kernel[(num_requests, num_qo_heads)](
                partial, lse, seq_lens, cu_seqlens_q, out, window, num_qo_heads, head_dim, num_splits,
                BLOCK_N=block_n, BLOCK_D=block_d, MAX_SPLITS=MAX_SPLITS, MIN_SPLIT=MIN_SPLIT_TOKENS,
                num_warps=4, **COMMON_OPTIONS,
            )  # fmt: skip


def decode_tile_tokens(dtype: torch.dtype) -> int:
    """Return how many keys one step of the decode loop takes: less where an element is four bytes."""
    return 32 if dtype == torch.float32 else 64
