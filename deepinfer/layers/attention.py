"""Causal attention with grouped queries over a paged KV cache."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from deepinfer import ops
from deepinfer.config import ModelConfig
from deepinfer.layers.linear import Linear
from deepinfer.layers.norm import RMSNorm
from deepinfer.layers.rotary import RotaryTable


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionMetadata:
    """Where the rows of one step belong. T rows of R requests; the rows of a request are consecutive.

    Attributes:
        positions: int64 [T], position of each row in its request.
        slot_mapping: int64 [T], block_id * block_size + offset where the row's keys and values go.
        block_table: int32 [R, B], blocks of each request in order; entries past its length are 0 and never read.
        cu_seqlens_q: int32 [R + 1], first row of each request, and T.
        seq_lens: int32 [R], tokens of each request including this step's rows.
        max_seqlen_q: most rows of one request.
        max_seqlen_k: largest of seq_lens.
    """

    positions: torch.Tensor
    slot_mapping: torch.Tensor
    block_table: torch.Tensor
    cu_seqlens_q: torch.Tensor
    seq_lens: torch.Tensor
    max_seqlen_q: int
    max_seqlen_k: int


class Attention(nn.Module):
    """Projections, optional q and k norms, rotation, paged attention, output projection."""

    def __init__(self, config: ModelConfig, *, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.num_qo_heads = config.num_qo_heads
        self.num_kv_heads = config.num_kv_heads
        self.head_dim = config.head_dim
        self.softmax_scale = config.head_dim**-0.5
        self.sliding_window = config.sliding_window
        self.qo_size = config.num_qo_heads * config.head_dim
        self.kv_size = config.num_kv_heads * config.head_dim
        qkv_size = self.qo_size + 2 * self.kv_size
        bias = config.attention_bias
        self.qkv_proj = Linear(config.hidden_size, qkv_size, bias=bias, dtype=dtype, device=device)
        self.o_proj = Linear(self.qo_size, config.hidden_size, bias=False, dtype=dtype, device=device)
        self.q_norm: RMSNorm | None = None
        self.k_norm: RMSNorm | None = None
        if config.qk_norm:
            self.q_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps, dtype=dtype, device=device)
            self.k_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps, dtype=dtype, device=device)

    def forward(
        self,
        x: torch.Tensor,
        rotary: RotaryTable,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        metadata: AttentionMetadata,
    ) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]; writes the rows' keys and values into the caches.

        Args:
            k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim].
        """
        q, k, v = self.qkv_proj(x).split([self.qo_size, self.kv_size, self.kv_size], dim=-1)
        q = q.unflatten(-1, (self.num_qo_heads, self.head_dim))
        k = k.unflatten(-1, (self.num_kv_heads, self.head_dim))
        v = v.unflatten(-1, (self.num_kv_heads, self.head_dim))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q = ops.rope_and_store_kv(
            q, k, v, metadata.positions, rotary.cos, rotary.sin, k_cache, v_cache, metadata.slot_mapping
        )
        attended = ops.attention_paged(
            q,
            k_cache,
            v_cache,
            metadata.block_table,
            metadata.seq_lens,
            metadata.cu_seqlens_q,
            softmax_scale=self.softmax_scale,
            max_seqlen_q=metadata.max_seqlen_q,
            max_seqlen_k=metadata.max_seqlen_k,
            sliding_window=self.sliding_window,
        )
        output: torch.Tensor = self.o_proj(attended.flatten(-2))
        return output
