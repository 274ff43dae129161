"""Paged KV cache bookkeeping: block pool, hashed prefix cache, block tables. No torch, no numpy."""

from deepinfer.kvcache.block_hash import compute_block_hash, compute_root_hash
from deepinfer.kvcache.block_pool import BlockPool
from deepinfer.kvcache.kv_cache_manager import KVCacheManager
from deepinfer.kvcache.prefix_cache import PrefixCache, PrefixHit

__all__ = [
    "BlockPool",
    "KVCacheManager",
    "PrefixCache",
    "PrefixHit",
    "compute_block_hash",
    "compute_root_hash",
]
