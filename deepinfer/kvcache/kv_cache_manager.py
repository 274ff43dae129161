"""KV blocks of requests: what a request can reuse, what it takes, what it leaves behind. Knows no scheduling policy."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence

from deepinfer.config.cache import DEFAULT_TTL_SECONDS
from deepinfer.errors import RequestError
from deepinfer.kvcache.block_hash import compute_root_hash
from deepinfer.kvcache.block_pool import BlockPool
from deepinfer.kvcache.prefix_cache import PrefixCache, PrefixHit
from deepinfer.request import Request
from deepinfer.sampling_params import CACHE_CLASSES

_MAX_ROOTS = 1024


class KVCacheManager:
    """Block tables of all requests over one pool.

    A request's `block_ids` hold one reference each. Blocks become findable once the tokens in them are computed:
    full ones through `commit`, the partly filled last one through `commit_tail` and `free`.
    """

    def __init__(
        self,
        *,
        num_blocks: int,
        block_size: int,
        enable_prefix_caching: bool = True,
        model_identity: bytes = b"",
        ttl_seconds: Sequence[float] = DEFAULT_TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ttl_seconds` belong to the classes of `CACHE_CLASSES`, in that order."""
        self.block_size = block_size
        self.enable_prefix_caching = enable_prefix_caching
        self.cache = PrefixCache(block_size)
        self.pool = BlockPool(num_blocks, on_evict=self.cache.remove, ttl_seconds=ttl_seconds, clock=clock)
        self._model_identity = model_identity
        self._root_hashes: dict[str, bytes] = {}

    @property
    def num_available_blocks(self) -> int:
        """Blocks that can be taken now, kept contents included."""
        return self.pool.num_available

    @property
    def usage_ratio(self) -> float:
        """Blocks held by requests / all blocks."""
        return 1.0 - self.pool.num_available / self.pool.num_blocks

    def count_blocks(self, num_tokens: int) -> int:
        """Blocks that `num_tokens` positions take."""
        return -(-num_tokens // self.block_size)

    def check_fits(self, request: Request) -> None:
        """Raise RequestError for a request that could not finish even alone."""
        num_blocks = self.count_blocks(request.num_prompt_tokens + max(0, request.max_output_tokens - 1))
        if num_blocks > self.pool.num_blocks:
            raise RequestError(
                f"prompt and output need {num_blocks} KV blocks, but there are {self.pool.num_blocks}; shorten "
                "the prompt, lower max_tokens, or start with a larger --kv-cache-memory",
                param="prompt",
            )

    def find_prefix(self, request: Request, max_tokens: int) -> PrefixHit:
        """What the cache knows of the request's prompt and output, at most `max_tokens` tokens. Takes nothing."""
        if not self._is_caching(request):
            return PrefixHit([], [], None, 0, 0, None)
        root = self._root_hash(request.sampling_params.cache_salt)
        return self.cache.find(root, _token_data(request, 0, request.num_tokens), max_tokens)

    def next_block_key(self, request: Request) -> tuple[bytes, bytes] | None:
        """(prefix name, data) of the next full block the request will complete from tokens it has; None if none."""
        index = len(request.block_hashes)
        end = (index + 1) * self.block_size
        if end > request.num_tokens or not self._is_caching(request):
            return None
        return self._parent_hash(request, index), _token_data(request, end - self.block_size, end)

    def can_allocate(self, hit: PrefixHit, num_new_blocks: int) -> bool:
        """Whether a hit can be taken together with new blocks."""
        return self.count_taken(hit) + num_new_blocks <= self.pool.num_available

    def count_taken(self, hit: PrefixHit) -> int:
        """Blocks of a hit that are available now and would not be after taking it."""
        ref_count = self.pool.ref_count
        taken = sum(1 for block_id in hit.block_ids if ref_count(block_id) == 0)
        if hit.copy_source is not None and ref_count(hit.copy_source) == 0:
            taken += 1
        return taken

    def allocate_prefix(self, request: Request, hit: PrefixHit) -> tuple[int, int] | None:
        """Start the block table of a request with a hit.

        Returns:
            The (source, destination) blocks to copy, or None. The source is held until `release_copy_source`.

        Raises:
            OutOfBlocksError: there is no block for the copy; the request holds the full blocks of the hit.
        """
        ttl_class = _ttl_class(request)
        for block_id in hit.block_ids:
            self.pool.acquire(block_id)
            self.pool.keep(block_id, ttl_class)
        request.block_ids = list(hit.block_ids)
        request.block_hashes = list(hit.block_hashes)
        if hit.copy_source is None:
            return None
        self.pool.acquire(hit.copy_source)
        (destination,) = self.pool.allocate(1)
        request.block_ids.append(destination)
        return hit.copy_source, destination

    def release_copy_source(self, block_id: int) -> None:
        """The copy from this block has been made."""
        self.pool.release(block_id)

    def allocate(self, request: Request, num_tokens: int) -> list[int]:
        """Extend the block table to cover `num_tokens` positions; returns the appended blocks.

        Raises:
            OutOfBlocksError: not enough blocks; nothing was taken.
        """
        missing = self.count_blocks(num_tokens) - len(request.block_ids)
        if missing <= 0:
            return []
        block_ids = self.pool.allocate(missing)
        request.block_ids.extend(block_ids)
        return block_ids

    def trim(self, request: Request, num_tokens: int) -> None:
        """Give back the blocks behind those that `num_tokens` positions take. They must not be findable."""
        for block_id in request.block_ids[self.count_blocks(num_tokens) :]:
            self.pool.release(block_id)
        del request.block_ids[self.count_blocks(num_tokens) :]

    def commit(self, request: Request) -> None:
        """Make the full blocks that are computed by now findable."""
        if not self._is_caching(request):
            return
        size = self.block_size
        hashes = request.block_hashes
        ttl_class = _ttl_class(request)
        for index in range(len(hashes), request.num_computed_tokens // size):
            data = _token_data(request, index * size, (index + 1) * size)
            block_hash = self._insert(request.block_ids[index], self._parent_hash(request, index), data, ttl_class)
            assert block_hash is not None
            hashes.append(block_hash)

    def commit_tail(self, request: Request) -> None:
        """Make the partly filled last block findable as far as it is computed."""
        self.commit(request)
        start = len(request.block_hashes) * self.block_size
        end = request.num_computed_tokens
        if end > start and self._is_caching(request):
            index = len(request.block_hashes)
            data = _token_data(request, start, end)
            self._insert(request.block_ids[index], self._parent_hash(request, index), data, _ttl_class(request))

    def free(self, request: Request, *, discard: bool = False) -> None:
        """Give back all blocks of a request; their computed contents stay findable until the blocks are needed.

        Args:
            discard: forget the contents instead, because they may be damaged.
        """
        if discard:
            for block_id in request.block_ids:
                self.cache.remove(block_id)
                self.pool.forget(block_id)
        elif request.block_ids:
            self.commit_tail(request)
        for block_id in reversed(request.block_ids):
            self.pool.release(block_id)
        request.block_ids = []
        request.block_hashes = []

    def _is_caching(self, request: Request) -> bool:
        return self.enable_prefix_caching and request.sampling_params.use_prefix_cache

    def _insert(self, block_id: int, parent_hash: bytes, data: bytes, ttl_class: int) -> bytes | None:
        block_hash, is_entered = self.cache.insert(block_id, parent_hash, data)
        if is_entered:
            self.pool.keep(block_id, ttl_class)
        else:
            self.pool.forget(block_id)
        return block_hash

    def _parent_hash(self, request: Request, index: int) -> bytes:
        if index > 0:
            return request.block_hashes[index - 1]
        return self._root_hash(request.sampling_params.cache_salt)

    def _root_hash(self, cache_salt: str) -> bytes:
        root = self._root_hashes.get(cache_salt)
        if root is None:
            if len(self._root_hashes) >= _MAX_ROOTS:  # salts are chosen by clients: bound what they can occupy
                self._root_hashes.clear()
            root = self._root_hashes[cache_salt] = compute_root_hash(self._model_identity, cache_salt)
        return root


def _ttl_class(request: Request) -> int:
    return CACHE_CLASSES.index(request.sampling_params.cache_class)


def _token_data(request: Request, start: int, end: int) -> bytes:
    """Tokens [start, end) of prompt + output as u32 in native order."""
    num_prompt = len(request.prompt_token_ids)
    data = request.prompt_token_ids[start:end].tobytes() if start < num_prompt else b""
    if end > num_prompt:
        data += array("I", request.output_token_ids[max(0, start - num_prompt) : end - num_prompt]).tobytes()
    return data
