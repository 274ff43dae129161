"""The single dispatch point of operators: Triton on CUDA tensors, the torch reference on CPU tensors.

Layers call these and know no backend. Shapes, dtypes and errors are documented at the operators in `deepinfer_kernels`.
"""

from __future__ import annotations

import torch

from deepinfer_kernels import add_and_rms_norm as _add_and_rms_norm
from deepinfer_kernels import attention_paged as _attention_paged
from deepinfer_kernels import block_copy as _block_copy
from deepinfer_kernels import rms_norm as _rms_norm
from deepinfer_kernels import rope_and_store_kv as _rope_and_store_kv
from deepinfer_kernels import sample_greedy as _sample_greedy
from deepinfer_kernels import silu_and_mul as _silu_and_mul


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalise the last axis."""
    if x.is_cuda:
        return _rms_norm.rms_norm(x, weight, eps)
    return _rms_norm.rms_norm_ref(x, weight, eps)


def add_and_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Add x to the residual stream in place, return the normalised sum."""
    if x.is_cuda:
        return _add_and_rms_norm.add_and_rms_norm(x, residual, weight, eps)
    return _add_and_rms_norm.add_and_rms_norm_ref(x, residual, weight, eps)


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """silu(first half of the columns) * second half."""
    if gate_up.is_cuda:
        return _silu_and_mul.silu_and_mul(gate_up)
    return _silu_and_mul.silu_and_mul_ref(gate_up)


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
    """Rotate q and k, store k and v in the cache, return the rotated q."""
    function = _rope_and_store_kv.rope_and_store_kv if q.is_cuda else _rope_and_store_kv.rope_and_store_kv_ref
    return function(q, k, v, positions, cos, sin, k_cache, v_cache, slot_mapping)


def attention_paged(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    *,
    softmax_scale: float,
    max_seqlen_q: int,
    max_seqlen_k: int,
    sliding_window: int | None,
) -> torch.Tensor:
    """Causal attention of flattened rows, prefill chunks and decode rows mixed, over paged keys and values."""
    function = _attention_paged.attention_paged if q.is_cuda else _attention_paged.attention_paged_ref
    return function(
        q,
        k_cache,
        v_cache,
        block_table,
        seq_lens,
        cu_seqlens_q,
        softmax_scale=softmax_scale,
        max_seqlen_q=max_seqlen_q,
        max_seqlen_k=max_seqlen_k,
        sliding_window=sliding_window,
    )


def sample_greedy(logits: torch.Tensor) -> torch.Tensor:
    """Lowest id of the largest logit of each row; -1 for a row that holds NaN, +inf or nothing finite."""
    return _sample_greedy.sample_greedy(logits) if logits.is_cuda else _sample_greedy.sample_greedy_ref(logits)


def block_copy(k_cache: torch.Tensor, v_cache: torch.Tensor, pairs: torch.Tensor) -> None:
    """Copy whole blocks of one layer: pairs [P, 2] of (source, destination)."""
    function = _block_copy.block_copy if k_cache.is_cuda else _block_copy.block_copy_ref
    function(k_cache, v_cache, pairs)
