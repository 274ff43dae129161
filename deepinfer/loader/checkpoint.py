"""What a model file gives to the rest of the engine, independent of its format. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deepinfer.config import ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTensor:
    """One tensor as it lies in the file, usually a view of a memory map.

    Attributes:
        name: canonical name (see `Checkpoint.tensors`).
        shape: logical shape, (rows, columns) for a matrix; a linear layer computes x @ W.T.
        storage: "f32", "f16", "bf16", or a GGUF block type: "q8_0", "q4_0", "q4_1", "q4_k", "q5_k", "q6_k".
        data: uint8, contiguous; rows follow each other, blocks run along columns.
        num_interleaved_heads: 0 when the rows of each head are in half-split order (first half rotates with second
            half); n > 0 when the rows of n heads are stored for rotation of adjacent pairs and must be reordered.
    """

    name: str
    shape: tuple[int, ...]
    storage: str
    data: NDArray[np.uint8]
    num_interleaved_heads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerSpec:
    """How to build the tokenizer: either the text of a `tokenizer.json`, or a GGUF vocabulary.

    Attributes:
        tokenizer_json: path of a Hugging Face `tokenizer.json`, or None.
        gguf_vocabulary: keys `model` ("gpt2", "llama"), `pre` (pre-tokenizer name), `tokens`, `merges`, `scores`,
            `token_types`, `add_bos`, `add_space_prefix`; empty when `tokenizer_json` is given.
        bos_token, eos_token: spellings that the chat template may use; "" where the model has none.
        add_bos_token: whether a plain completion prompt starts with the begin-of-sequence token.
    """

    tokenizer_json: Path | None = None
    gguf_vocabulary: Mapping[str, Any] = field(default_factory=dict)
    bos_token: str = ""
    eos_token: str = ""
    add_bos_token: bool = False


class Checkpoint(Protocol):
    """An opened model file or directory."""

    path: Path
    config: ModelConfig
    tokenizer: TokenizerSpec
    chat_template: str | None
    default_model_name: str

    @property
    def tensors(self) -> Mapping[str, RawTensor]:
        """Tensors by canonical name.

        `embed_tokens`, `final_norm`, `lm_head` (absent when tied), and for each layer i
        `layers.{i}.` + `attn_norm`, `q_proj`, `k_proj`, `v_proj`, `o_proj`, `q_bias`, `k_bias`, `v_bias`, `q_norm`,
        `k_norm`, `mlp_norm`, `gate_proj`, `up_proj`, `down_proj`.
        """
        ...

    def release_pages(self) -> None:
        """Give resident pages of the files back to the system, once the weights were copied; data stays readable."""
        ...
