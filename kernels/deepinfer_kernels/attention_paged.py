"""Causal attention with grouped queries over a paged KV cache, for any mix of prefill chunks and decode rows.

Request r owns rows cu_seqlens_q[r] .. cu_seqlens_q[r + 1] of q; its i-th row stands at position
p = seq_lens[r] - q_len[r] + i and sees key positions j in (p - sliding_window, p] (all of [0, p] without a window):

    out[t, h] = sum_j softmax_j(softmax_scale * <q[t, h], k[j, h // group]>) * v[j, h // group]
    k[j] = k_cache[block_table[r, j // block_size], j % block_size]

Shapes: q, out [T, num_qo_heads, head_dim]; k_cache, v_cache [num_blocks, block_size, num_kv_heads, head_dim];
block_table [R, B]; seq_lens [R]; cu_seqlens_q [R + 1]. Numerics: scores, softmax and sums in float32; the
probabilities are rounded to q's dtype before the product with v.
Bytes moved: q and out once, K and V of the visible positions once per request (decode) or once per query tile.

This file holds the reference and the public function. Rows of requests with one query go to
`attention_paged_decode`, all others to `attention_paged_prefill`, so that a decode row's bits do not depend on what
else is in the batch.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, INDEX_DTYPES, check_positive, check_tensor
from deepinfer_kernels.attention_paged_decode import attention_paged_decode
from deepinfer_kernels.attention_paged_prefill import attention_paged_prefill
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.launch import next_power_of_two

MAX_HEAD_DIM = 256


def attention_paged_ref(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    *,
    softmax_scale: float,
    sliding_window: int | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Torch reference of `attention_paged`: one gather and one float32 attention per request.

    The query heads of a group are folded into query rows, so keys and values are never repeated. `max_seqlen_q` and
    `max_seqlen_k` are not needed here.
    """
    out = torch.zeros_like(q) if out is None else out
    block_size, num_kv_heads, head_dim = k_cache.shape[1:]
    group = q.shape[1] // num_kv_heads
    starts = cu_seqlens_q.tolist()
    for r, seq_len in enumerate(seq_lens.tolist()):
        start, stop = starts[r], starts[r + 1]
        q_len = stop - start
        if q_len <= 0:
            continue
        if seq_len <= 0:
            out[start:stop] = 0
            continue
        first = 0 if sliding_window is None else max(0, seq_len - q_len - sliding_window + 1)
        first_block = first // block_size
        block_ids = block_table[r, first_block : -(-seq_len // block_size)]
        begin, end = first - first_block * block_size, seq_len - first_block * block_size
        k, v = (
            cache.index_select(0, block_ids).flatten(0, 1)[begin:end].transpose(0, 1).float()
            for cache in (k_cache, v_cache)
        )
        # [q_len, num_kv_heads * group, D] -> [num_kv_heads, group * q_len, D]
        rows = q[start:stop].float().view(q_len, num_kv_heads, group, head_dim)
        rows = rows.permute(1, 2, 0, 3).reshape(num_kv_heads, group * q_len, head_dim)
        mask = _visible(q_len, seq_len, first, sliding_window, group, q.device)
        y = torch.nn.functional.scaled_dot_product_attention(
            rows[None], k[None], v[None], attn_mask=mask, scale=softmax_scale
        )[0]
        y = y.view(num_kv_heads, group, q_len, head_dim).permute(2, 0, 1, 3)
        out[start:stop] = y.reshape(q_len, num_kv_heads * group, head_dim).to(out.dtype)
    return out


def _visible(
    q_len: int, seq_len: int, first: int, sliding_window: int | None, group: int, device: torch.device
) -> torch.Tensor | None:
    """Return which of the key positions first .. seq_len each of group * q_len rows sees; None if all see all."""
    if q_len == 1:
        return None
    query_position = torch.arange(seq_len - q_len, seq_len, device=device)[:, None]
    key_position = torch.arange(first, seq_len, device=device)[None, :]
    visible = key_position <= query_position
    if sliding_window is not None:
        visible &= key_position > query_position - sliding_window
    return visible.repeat(group, 1)


def attention_paged(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    *,
    softmax_scale: float,
    sliding_window: int | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend from every row of q to the cached keys and values of its request.

    The keys and values of the step itself must be in the cache already (`rope_and_store_kv`).

    Args:
        q: [T, num_qo_heads, head_dim] fp32|fp16|bf16, contiguous last dim, head_dim <= 256; T may be 0.
        k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim] fp32|fp16|bf16, equal dtype and strides,
            contiguous last dim; block_size a power of two >= 16; num_kv_heads divides num_qo_heads.
        block_table: [R, B] int32, contiguous last dim; entries behind a request's last block are not read.
        seq_lens: [R] int32, positions of each request including this step's rows; 0 gives rows of zeros.
        cu_seqlens_q: [R + 1] int32, starts at 0, ends at T; equal neighbours mean a request without rows.
        softmax_scale: factor of the scores, > 0.
        sliding_window: positions a query sees, itself included; None for all.
        max_seqlen_q, max_seqlen_k: upper bounds of the rows of a request and of seq_lens, where the host knows them;
            None takes T and what block_table can hold, which launches programs that find nothing to do. A bound that
            is too small loses rows or keys. They do not change a row's bits.
        out: [T, num_qo_heads, head_dim], dtype of q, contiguous; **mutated**; None allocates it.

    Returns:
        `out`. Rows that belong to no request hold nothing of meaning. A NaN among the keys and values of a request
        reaches rows of that request only; cache slots behind seq_lens may hold anything.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    _check_arguments(
        q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q, softmax_scale, sliding_window, max_seqlen_q,
        max_seqlen_k, out,
    )  # fmt: skip
    max_seqlen_q = q.shape[0] if max_seqlen_q is None else max_seqlen_q
    max_seqlen_k = block_table.shape[1] * k_cache.shape[1] if max_seqlen_k is None else max_seqlen_k
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device) if out is None else out
    if q.numel() == 0 or block_table.shape[0] == 0 or max_seqlen_q == 0:
        return out
    window = 0 if sliding_window is None else sliding_window
    attention_paged_decode(
        q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q, out,
        softmax_scale=softmax_scale, max_seqlen_k=max_seqlen_k, window=window,
    )  # fmt: skip
    if max_seqlen_q > 1:
        attention_paged_prefill(
            q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q, out,
            softmax_scale=softmax_scale, max_seqlen_q=max_seqlen_q, window=window,
        )  # fmt: skip
    return out


def _check_arguments(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    softmax_scale: float,
    sliding_window: int | None,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    out: torch.Tensor | None,
) -> None:
    check_tensor("q", q, shape=("T", "num_qo_heads", "head_dim"), dtypes=FLOAT_DTYPES)
    num_qo_heads, head_dim = q.shape[1:]
    cache_shape = ("num_blocks", "block_size", "num_kv_heads", head_dim)
    check_tensor("k_cache", k_cache, shape=cache_shape, dtypes=FLOAT_DTYPES, device=q.device)
    check_tensor("v_cache", v_cache, shape=tuple(k_cache.shape), dtypes=(k_cache.dtype,), device=q.device)
    if k_cache.stride() != v_cache.stride():
        raise KernelArgumentError("v_cache", got=f"strides {v_cache.stride()}", expected=f"strides {k_cache.stride()}")
    block_size, num_kv_heads = k_cache.shape[1:3]
    if block_size < 16 or block_size != next_power_of_two(block_size):
        raise KernelArgumentError("block_size", got=block_size, expected="a power of two >= 16")
    if num_kv_heads == 0 or num_qo_heads % num_kv_heads:
        raise KernelArgumentError(
            "num_qo_heads", got=num_qo_heads, expected=f"a multiple of num_kv_heads = {num_kv_heads}"
        )
    if not 1 <= head_dim <= MAX_HEAD_DIM:
        raise KernelArgumentError("head_dim", got=head_dim, expected=f"in [1, {MAX_HEAD_DIM}]")
    check_tensor("block_table", block_table, shape=("R", "B"), dtypes=INDEX_DTYPES, device=q.device)
    num_requests, table_width = block_table.shape
    check_tensor("seq_lens", seq_lens, shape=(num_requests,), dtypes=INDEX_DTYPES, device=q.device)
    check_tensor("cu_seqlens_q", cu_seqlens_q, shape=(num_requests + 1,), dtypes=INDEX_DTYPES, device=q.device)
    check_positive("softmax_scale", softmax_scale)
    if max_seqlen_q is not None and not 0 <= max_seqlen_q <= max(q.shape[0], 1):
        raise KernelArgumentError("max_seqlen_q", got=max_seqlen_q, expected=f"in [0, T = {q.shape[0]}]")
    if max_seqlen_k is not None and not 0 <= max_seqlen_k <= table_width * block_size:
        raise KernelArgumentError(
            "max_seqlen_k", got=max_seqlen_k, expected=f"in [0, {table_width * block_size}], what block_table can hold"
        )
    if sliding_window is not None and sliding_window < 1:
        raise KernelArgumentError("sliding_window", got=sliding_window, expected="None or >= 1")
    if out is not None:
        check_tensor("out", out, shape=tuple(q.shape), dtypes=(q.dtype,), device=q.device)
        if not out.is_contiguous():
            raise KernelArgumentError("out", got=f"strides {out.stride()}", expected="contiguous")
