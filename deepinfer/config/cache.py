"""Configuration of the KV cache."""

from __future__ import annotations

from dataclasses import dataclass

from deepinfer.errors import ConfigError

BLOCK_SIZES = (16, 32, 64, 128)
DEFAULT_TTL_SECONDS = (60.0, 600.0, 86_400.0)
KV_CACHE_DTYPES = ("auto", "float32", "float16", "bfloat16", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """KV cache of one engine.

    Attributes:
        block_size: token slots in one block.
        kv_cache_memory_bytes: memory for KV blocks; None lets the engine choose from what the machine has free.
        enable_prefix_caching: whether finished and running requests lend their blocks to equal prefixes.
        ttl_seconds: for how long the content of a block that nobody uses is preferred to that of others, for requests
            of the classes short, normal and long. It only decides who leaves first when blocks are needed.
        kv_cache_dtype: "auto" (what the executor computes fastest), "float32", "float16", "bfloat16", or
            "int8" (native CPU operators only: a scale for each key and value, about half the memory of float16).
    """

    block_size: int = 64
    kv_cache_memory_bytes: int | None = None
    enable_prefix_caching: bool = True
    ttl_seconds: tuple[float, float, float] = DEFAULT_TTL_SECONDS
    kv_cache_dtype: str = "auto"

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        if self.block_size not in BLOCK_SIZES:
            raise ConfigError(f"block_size must be one of {BLOCK_SIZES}, but is {self.block_size!r}")
        if self.kv_cache_memory_bytes is not None and self.kv_cache_memory_bytes < 1:
            raise ConfigError(f"kv_cache_memory must be positive, but is {self.kv_cache_memory_bytes!r} bytes")
        if len(self.ttl_seconds) != 3 or not 0.0 <= self.ttl_seconds[0] <= self.ttl_seconds[1] <= self.ttl_seconds[2]:
            raise ConfigError(f"ttl_seconds must be three rising numbers >= 0, but is {self.ttl_seconds!r}")
        if self.kv_cache_dtype not in KV_CACHE_DTYPES:
            raise ConfigError(
                f"kv_cache_dtype must be one of {', '.join(KV_CACHE_DTYPES)}, but is {self.kv_cache_dtype!r}"
            )
