"""Names of KV block contents: a chain of hashes over model, salt and token ids."""

from __future__ import annotations

import hashlib

HASH_BYTES = 16


def compute_root_hash(model_identity: bytes, cache_salt: str) -> bytes:
    """Name of the empty prefix. Different models or salts share no descendant.

    Args:
        model_identity: whatever makes KV entries of two models differ: weights, layout, number types.
    """
    digest = hashlib.blake2b(digest_size=HASH_BYTES, person=b"deepinfer-root")
    digest.update(len(model_identity).to_bytes(8, "little"))
    digest.update(model_identity)
    digest.update(cache_salt.encode("utf-8", "surrogatepass"))
    return digest.digest()


def compute_block_hash(parent_hash: bytes, token_data: bytes) -> bytes:
    """Name of a full block: its own tokens (u32, native order) and everything before them."""
    return hashlib.blake2b(parent_hash + token_data, digest_size=HASH_BYTES, person=b"deepinfer-block").digest()
