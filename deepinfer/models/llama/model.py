"""The decoder-only transformer shared by Llama 3.x, SmolLM2, Qwen2/2.5, Qwen3 and Mistral."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from deepinfer import ops
from deepinfer.config import ModelConfig
from deepinfer.layers.attention import Attention, AttentionMetadata
from deepinfer.layers.linear import Linear
from deepinfer.layers.mlp import MLP
from deepinfer.layers.norm import RMSNorm
from deepinfer.layers.rotary import RotaryTable


class LlamaLayer(nn.Module):
    """Attention and feed-forward, each after a norm and added to the residual stream."""

    def __init__(self, config: ModelConfig, *, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.attn_norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=dtype, device=device)
        self.attention = Attention(config, dtype=dtype, device=device)
        self.mlp_norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=dtype, device=device)
        self.mlp = MLP(config, dtype=dtype, device=device)

    def forward(
        self,
        x: torch.Tensor,
        residual: torch.Tensor,
        rotary: RotaryTable,
        kv_cache: torch.Tensor,
        metadata: AttentionMetadata,
    ) -> torch.Tensor:
        """One layer.

        Args:
            x: [T, hidden], output of the layer below, not yet in the residual stream.
            residual: [T, hidden]; mutated: x and the output of the attention are added.
            kv_cache: [2, num_blocks, block_size, num_kv_heads, head_dim], keys and values of this layer.

        Returns:
            [T, hidden], output of the feed-forward, not yet in the residual stream.
        """
        x = ops.add_and_rms_norm(x, residual, self.attn_norm.weight, self.attn_norm.eps)
        x = self.attention(x, rotary, kv_cache[0], kv_cache[1], metadata)
        x = ops.add_and_rms_norm(x, residual, self.mlp_norm.weight, self.mlp_norm.eps)
        output: torch.Tensor = self.mlp(x)
        return output


class LlamaModel(nn.Module):
    """Embedding, layers, final norm and output head; weights are uninitialised until loaded."""

    def __init__(self, config: ModelConfig, *, max_model_len: int, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.config = config
        embedding = torch.empty(config.vocab_size, config.hidden_size, dtype=dtype, device=device)
        self.embed_tokens = nn.Parameter(embedding, False)
        self.layers = nn.ModuleList(LlamaLayer(config, dtype=dtype, device=device) for _ in range(config.num_layers))
        self.final_norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=dtype, device=device)
        self.lm_head: Linear | None = None
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, dtype=dtype, device=device)
        self.rotary = RotaryTable(config, num_positions=max_model_len, device=device)

    def forward(self, input_ids: torch.Tensor, kv_cache: torch.Tensor, metadata: AttentionMetadata) -> torch.Tensor:
        """Residual stream after the last layer.

        Args:
            input_ids: int64 [T].
            kv_cache: [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim]; written at `slot_mapping`.

        Returns:
            [T, hidden], before the final norm.
        """
        residual = torch.zeros(
            len(input_ids), self.config.hidden_size, dtype=self.embed_tokens.dtype, device=input_ids.device
        )
        x = functional.embedding(input_ids, self.embed_tokens)
        for layer, layer_cache in zip(self.layers, kv_cache, strict=True):
            x = layer(x, residual, self.rotary, layer_cache, metadata)
        return residual.add_(x)

    def compute_logits(self, residual: torch.Tensor) -> torch.Tensor:
        """[R, hidden] before the final norm -> float32 [R, vocab_size]."""
        x = self.final_norm(residual)
        logits: torch.Tensor = functional.linear(x, self.embed_tokens) if self.lm_head is None else self.lm_head(x)
        return logits.float()
