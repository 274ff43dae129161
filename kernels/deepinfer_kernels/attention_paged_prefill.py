"""Requests with several rows of `attention_paged`: prefill chunks, tiled over queries, online softmax over keys.

One program takes BLOCK_M rows of one request and one KV head, where a row is a (query, query head of the group) pair,
query-major; so a small chunk fills a tile together with its group. Keys run from the first one visible to the tile's
first query to the last one visible to its last; tiles that all queries see skip the mask. The scheme is that of
FlashAttention-2 (Dao 2023, arXiv:2307.08691).
Bytes moved: q and out once, K and V of the visible positions once per tile of queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deepinfer_kernels.attention_paged_decode import LOG2_E, locate_keys
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, cdiv, device_guard, next_power_of_two


@jit
def _attend_to_tile(
    q: tl.tensor,
    acc: tl.tensor,
    peak: tl.tensor,
    total: tl.tensor,
    start: tl.tensor,
    end: tl.tensor,
    query_positions: tl.tensor,
    window: tl.tensor,
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    table_row: tl.tensor,
    head_offset: tl.tensor,
    scale_log2: tl.tensor,
    head_dim: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    IS_MASKED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """One step of the online softmax over keys start .. start + BLOCK_N; returns the new acc, peak and total."""
    positions = start + tl.arange(0, BLOCK_N)
    columns = tl.arange(0, BLOCK_D)
    inside = positions < end
    is_column = columns < head_dim
    keys = locate_keys(table_row, start, inside, stride_cb, stride_cs, BLOCK_SIZE, BLOCK_N) + head_offset
    k = tl.load(k_cache_ptr + keys[None, :] + columns[:, None], mask=inside[None, :] & is_column[:, None], other=0.0)
    scores = tl.dot(q, k.to(q.dtype), input_precision="ieee") * scale_log2
    if IS_MASKED:
        distance = query_positions[:, None] - positions[None, :]
        visible = (distance >= 0) & ((window == 0) | (distance < window))
        scores = tl.where(visible, scores, float("-inf"))
    new_peak = tl.maximum(peak, tl.max(scores, axis=1))
    # A row that has seen no key yet has peak -inf; subtracting 0 instead keeps its weights 0 and not NaN.
    base = tl.where(new_peak == float("-inf"), 0.0, new_peak)
    fade = tl.exp2(peak - base)
    weights = tl.exp2(scores - base[:, None])
    total = total * fade + tl.sum(weights, axis=1)
    v = tl.load(v_cache_ptr + keys[:, None] + columns[None, :], mask=inside[:, None] & is_column[None, :], other=0.0)
    acc = acc * fade[:, None] + tl.dot(weights.to(q.dtype), v.to(q.dtype), input_precision="ieee")
    return acc, new_peak, total


@jit
def _attention_paged_prefill_kernel(
    q_ptr: tl.tensor,
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    block_table_ptr: tl.tensor,
    seq_lens_ptr: tl.tensor,
    cu_seqlens_q_ptr: tl.tensor,
    out_ptr: tl.tensor,
    scale_log2: tl.tensor,
    window: tl.tensor,
    num_qo_heads: tl.tensor,
    head_dim: tl.tensor,
    stride_qt: tl.tensor,
    stride_qh: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    stride_ch: tl.tensor,
    stride_br: tl.tensor,
    GROUP: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    tile = tl.program_id(0)
    kv_head = tl.program_id(1).to(tl.int64)
    request = tl.program_id(2).to(tl.int64)
    first_row = tl.load(cu_seqlens_q_ptr + request).to(tl.int64)
    q_len = (tl.load(cu_seqlens_q_ptr + request + 1).to(tl.int64) - first_row).to(tl.int32)
    # One query is a decode row, which is not this kernel's.
    if (q_len <= 1) | (tile * BLOCK_M >= q_len * GROUP):
        return
    seq_len = tl.load(seq_lens_ptr + request).to(tl.int32)
    pairs = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    queries = pairs // GROUP
    q_heads = kv_head * GROUP + pairs % GROUP
    columns = tl.arange(0, BLOCK_D)
    stored = (queries < q_len)[:, None] & (columns < head_dim)[None, :]
    q = tl.load(
        q_ptr + (first_row + queries)[:, None] * stride_qt + q_heads[:, None] * stride_qh + columns[None, :],
        mask=stored,
        other=0.0,
    )
    query_positions = seq_len - q_len + queries
    first_position = seq_len - q_len + tile * BLOCK_M // GROUP
    last_query = tl.minimum((tile * BLOCK_M + BLOCK_M - 1) // GROUP, q_len - 1)
    end = seq_len - q_len + last_query + 1
    begin = 0
    full_end = tl.maximum(first_position + 1, 0) // BLOCK_N * BLOCK_N
    if window > 0:
        begin = tl.maximum(first_position - window + 1, 0) // BLOCK_N * BLOCK_N
        full_end = begin
    table_row = block_table_ptr + request * stride_br
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(begin, full_end, BLOCK_N):
        acc, peak, total = _attend_to_tile(
            q, acc, peak, total, start, end, query_positions, window, k_cache_ptr, v_cache_ptr, table_row,
            kv_head * stride_ch, scale_log2, head_dim, stride_cb, stride_cs, BLOCK_SIZE, BLOCK_N, BLOCK_D, False,
        )  # fmt: skip
    for start in range(full_end, end, BLOCK_N):
        acc, peak, total = _attend_to_tile(
            q, acc, peak, total, start, end, query_positions, window, k_cache_ptr, v_cache_ptr, table_row,
            kv_head * stride_ch, scale_log2, head_dim, stride_cb, stride_cs, BLOCK_SIZE, BLOCK_N, BLOCK_D, True,
        )  # fmt: skip
    acc = acc / tl.where(total > 0.0, total, 1.0)[:, None]
    target = ((first_row + queries) * num_qo_heads + q_heads)[:, None] * head_dim + columns[None, :]
    tl.store(out_ptr + target, acc.to(out_ptr.dtype.element_ty), mask=stored)


def attention_paged_prefill(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    out: torch.Tensor,
    *,
    softmax_scale: float,
    max_seqlen_q: int,
    window: int,
) -> None:
    """Fill the rows of `out` that belong to requests with two or more queries; leave all others.

    Arguments as `attention_paged` checks them; `window` 0 means none.
    """
    num_qo_heads, head_dim = q.shape[1:]
    block_size, num_kv_heads = k_cache.shape[1:3]
    group = num_qo_heads // num_kv_heads
    tile = prefill_tile(q.dtype, head_dim)
    with device_guard(q):
        _attention_paged_prefill_kernel[(cdiv(max_seqlen_q * group, tile.block_m), num_kv_heads, block_table.shape[0])](
            q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q, out,
            softmax_scale * LOG2_E, window, num_qo_heads, head_dim,
            q.stride(0), q.stride(1), *k_cache.stride()[:3], block_table.stride(0),
            GROUP=group, BLOCK_SIZE=block_size, BLOCK_M=tile.block_m, BLOCK_N=tile.block_n,
            BLOCK_D=max(next_power_of_two(head_dim), 16), num_warps=tile.num_warps, num_stages=2, **COMMON_OPTIONS,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrefillTile:
    """Rows, keys and warps of one program."""

    block_m: int
    block_n: int
    num_warps: int


def prefill_tile(dtype: torch.dtype, head_dim: int) -> PrefillTile:
    """Return the tile of a dtype and head size: the largest that compiles without spills from sm_80 on."""
    if dtype == torch.float32:
        return PrefillTile(32, 16, 8)
    if head_dim > 128:
        return PrefillTile(32, 32, 8)
    return PrefillTile(64, 64, 4 if head_dim <= 64 else 8)
