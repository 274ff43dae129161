"""The one configuration object of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deepinfer.config.cache import CacheConfig
from deepinfer.config.scheduler import SchedulerConfig
from deepinfer.config.speculative import SpeculativeConfig
from deepinfer.errors import ConfigError

DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda")
CPU_BACKENDS = ("auto", "native", "torch")
CPU_ACTIVATIONS = ("exact", "fast")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything an engine is built from.

    Attributes:
        model: GGUF file or Hugging Face directory.
        dtype: compute type of the torch executor; "auto" is float32 on a CPU and bfloat16 on a GPU.
        device: "auto" takes a GPU if there is one.
        cpu_backend: "native" is the Rust operators, "torch" the reference; "auto" prefers native where it covers the
            model.
        cpu_activations: form of activations in the native operators: "exact" (15 bits) or "fast" (8 bits: quicker for
            long prompts and many requests, results further from full precision).
        max_model_len: longest prompt + output; None takes the model's own context.
        num_threads: compute threads on a CPU; None takes what the process may use.
        served_model_name: id in the API; None derives it from the file.
    """

    model: Path
    dtype: str = "auto"
    device: str = "auto"
    cpu_backend: str = "auto"
    cpu_activations: str = "exact"
    max_model_len: int | None = None
    num_threads: int | None = None
    served_model_name: str | None = None
    cache: CacheConfig = field(default_factory=CacheConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    speculative: SpeculativeConfig = field(default_factory=SpeculativeConfig)

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        for name, allowed in (
            ("dtype", DTYPES),
            ("device", DEVICES),
            ("cpu_backend", CPU_BACKENDS),
            ("cpu_activations", CPU_ACTIVATIONS),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, but is {getattr(self, name)!r}")
        for name in ("max_model_len", "num_threads"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name} must be a positive integer, but is {value!r}")
