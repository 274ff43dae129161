"""What a Llama-type model looks like, independent of the file it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from deepinfer.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """Scaling of rotary frequencies.

    Attributes:
        kind: "linear" (positions divided by factor) or "llama3" (frequency-dependent, Llama 3.1).
        factor: stretch of the context.
        low_freq_factor, high_freq_factor, original_max_position_embeddings: only for llama3.
        frequency_factors: per-frequency divisors given by a file (GGUF `rope_freqs`); head_dim/2 values, or empty.
    """

    kind: str
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192
    frequency_factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shape of a decoder-only transformer with RMSNorm, rotary positions, grouped queries and SwiGLU.

    Covers Llama 2/3.x, SmolLM2, Qwen2/2.5 (`attention_bias` on q, k, v), Qwen3 (`qk_norm`) and Mistral.

    Attributes:
        architecture: family name: "llama", "qwen2", "qwen3" or "mistral".
        head_dim: size of one head; num_qo_heads * head_dim need not equal hidden_size.
        rope_theta: base of the rotary frequencies.
        tie_word_embeddings: whether the output head is the embedding matrix.
        attention_bias: biases on the q, k and v projections.
        qk_norm: RMSNorm over head_dim on q and k before the rotation.
        sliding_window: positions each query sees, or None for all.
        max_position_embeddings: context the model was trained for.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    qk_norm: bool = False
    sliding_window: int | None = None
    eos_token_ids: tuple[int, ...] = field(default=())
    bos_token_id: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError when the shape is impossible."""
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_layers", "num_qo_heads", "num_kv_heads",
                     "head_dim", "max_position_embeddings"):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"the model's {name} must be a positive integer, but is {value!r}")
        factor = self.rope_scaling.factor if self.rope_scaling is not None else 1.0
        for name, number in (
            ("rms_norm_eps", self.rms_norm_eps),
            ("rope_theta", self.rope_theta),
            ("rope_scaling factor", factor),
        ):
            if not 0.0 < number < math.inf:
                raise ConfigError(f"the model's {name} must be a positive number, but is {number!r}")
        if self.num_qo_heads % self.num_kv_heads:
            raise ConfigError(
                f"the model's num_qo_heads ({self.num_qo_heads}) must be a multiple of num_kv_heads "
                f"({self.num_kv_heads})"
            )
        if self.head_dim % 2:
            raise ConfigError(f"the model's head_dim must be even for rotary positions, but is {self.head_dim}")

    @property
    def num_kv_values_per_token(self) -> int:
        """Numbers stored for one position over all layers, keys and values."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim
