"""How many KV blocks fit. No torch here."""

from __future__ import annotations

import math
from typing import Final

from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.errors import ConfigError

# Share of the free memory that blocks may take when the user names no size.
DEFAULT_MEMORY_RATIO: Final = 0.25
MIN_USEFUL_TOKENS: Final = 1024


def compute_num_blocks(
    config: EngineConfig, model_config: ModelConfig, *, bytes_per_value: float, available_bytes: int
) -> int:
    """Blocks to allocate: what was asked for, else a share of the free memory but no more than can ever be in use.

    Raises:
        ConfigError: the memory asked for is not there, or does not hold one request of the length asked for.
    """
    block_size = config.cache.block_size
    bytes_per_token = math.ceil(model_config.num_kv_values_per_token * bytes_per_value)
    max_model_len = config.max_model_len or model_config.max_position_embeddings
    blocks_per_request = -(-max_model_len // block_size)
    memory = config.cache.kv_cache_memory_bytes
    if memory is None:
        useful = blocks_per_request * config.scheduler.max_num_seqs
        num_blocks = min(useful, int(available_bytes * DEFAULT_MEMORY_RATIO) // (bytes_per_token * block_size))
    elif memory > available_bytes:
        raise ConfigError(
            f"kv_cache_memory is {memory} bytes, but {available_bytes} are free beside the model's weights; "
            "ask for less or leave it out"
        )
    else:
        num_blocks = memory // (bytes_per_token * block_size)
    # A length that the user asked for must fit; the model's own context may be cut to what fits.
    required_tokens = config.max_model_len or min(max_model_len, MIN_USEFUL_TOKENS)
    if num_blocks * block_size < required_tokens:
        raise ConfigError(
            f"the KV cache would hold {num_blocks * block_size} tokens, but one request may have {required_tokens}; "
            f"set kv_cache_memory to at least {-(-required_tokens // block_size) * block_size * bytes_per_token} bytes "
            "or lower max_model_len"
        )
    return num_blocks
