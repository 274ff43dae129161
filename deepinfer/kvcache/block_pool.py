"""Who holds which KV block. Knows block ids and reference counts, not what the blocks contain."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from deepinfer.errors import OutOfBlocksError


class BlockPool:
    """Reference counts, free list and eviction order of `num_blocks` blocks.

    Every block is in exactly one of three states: held (reference count > 0), free, or evictable: held by nobody but
    kept because its content may be asked for again. Evictable blocks leave in the order in which they were released;
    whoever releases the blocks of a sequence from its end to its start thereby evicts leaves before their parents.
    """

    def __init__(self, num_blocks: int, on_evict: Callable[[int], None]) -> None:
        """`on_evict(block_id)` is called when a kept block is taken for new content."""
        self.num_blocks = num_blocks
        self._on_evict = on_evict
        self._ref_counts = [0] * num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._evictable: OrderedDict[int, None] = OrderedDict()  # oldest release first
        self._kept = bytearray(num_blocks)  # 1: becomes evictable instead of free

    @property
    def num_available(self) -> int:
        """Blocks that `allocate` could hand out: free and evictable ones."""
        return len(self._free) + len(self._evictable)

    @property
    def num_evictable(self) -> int:
        """Blocks held by nobody whose content is kept."""
        return len(self._evictable)

    def ref_count(self, block_id: int) -> int:
        """Holders of a block."""
        return self._ref_counts[block_id]

    def allocate(self, num_blocks: int) -> list[int]:
        """Take blocks for new content, free ones first, then the longest released.

        Raises:
            OutOfBlocksError: fewer than `num_blocks` are available; nothing was taken.
        """
        if num_blocks > self.num_available:
            raise OutOfBlocksError(f"{num_blocks} KV blocks are needed, {self.num_available} are available")
        free = self._free
        block_ids = []
        for _ in range(num_blocks):
            if free:
                block_id = free.pop()
            else:
                block_id, _ = self._evictable.popitem(last=False)
                self._kept[block_id] = 0
                self._on_evict(block_id)
            self._ref_counts[block_id] = 1
            block_ids.append(block_id)
        return block_ids

    def acquire(self, block_id: int) -> None:
        """Add a holder to a held or kept block."""
        if self._ref_counts[block_id] == 0:
            del self._evictable[block_id]  # KeyError: the block is free, its content is gone
        self._ref_counts[block_id] += 1

    def release(self, block_id: int) -> None:
        """Remove a holder. Releasing a block that nobody holds is a bug of the caller and raises RuntimeError."""
        count = self._ref_counts[block_id] - 1
        if count < 0:
            raise RuntimeError(f"KV block {block_id} was released more often than it was taken")
        self._ref_counts[block_id] = count
        if count == 0:
            if self._kept[block_id]:
                self._evictable[block_id] = None
            else:
                self._free.append(block_id)

    def keep(self, block_id: int) -> None:
        """Keep the content of a held block after its last holder is gone."""
        self._kept[block_id] = 1

    def forget(self, block_id: int) -> None:
        """The content of a block will not be asked for any more."""
        self._kept[block_id] = 0
        if self._ref_counts[block_id] == 0 and block_id in self._evictable:
            del self._evictable[block_id]
            self._free.append(block_id)
