"""Who holds which KV block. Knows block ids and reference counts, not what the blocks contain."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from deepinfer.errors import OutOfBlocksError


class BlockPool:
    """Reference counts, free list and eviction order of `num_blocks` blocks.

    Every block is in exactly one of three states: held (reference count > 0), free, or evictable: held by nobody but
    kept because its content may be asked for again. Each kept block belongs to a class with a time to live, counted
    from its last release; the block whose time ends first leaves first, within a class the longest released. Time that
    is over does not free a block by itself: nobody needs it yet.

    Whoever releases the blocks of a sequence from its end to its start thereby evicts leaves before their parents,
    across classes too: who uses a leaf uses its parents, so these are released later and of no lower class.
    """

    def __init__(
        self,
        num_blocks: int,
        on_evict: Callable[[int], None],
        *,
        ttl_seconds: Sequence[float] = (0.0,),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with every block free.

        Args:
            num_blocks: blocks with the ids 0 to num_blocks - 1.
            on_evict: called with the id when a kept block is taken for new content.
            ttl_seconds: time to live of each class, in rising order; by default there is one class.
            clock: monotonic seconds.
        """
        self.num_blocks = num_blocks
        self._on_evict = on_evict
        self._ref_counts = [0] * num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._ttl_seconds = tuple(ttl_seconds)
        self._clock = clock
        # For each class: block -> when its time ends, oldest release first.
        self._evictable: list[OrderedDict[int, float]] = [OrderedDict() for _ in self._ttl_seconds]
        self._class_numbers = bytearray(num_blocks)  # class + 1 of a kept block, else 0

    @property
    def num_available(self) -> int:
        """Blocks that `allocate` could hand out: free and evictable ones."""
        return len(self._free) + self.num_evictable

    @property
    def num_evictable(self) -> int:
        """Blocks held by nobody whose content is kept."""
        return sum(map(len, self._evictable))

    def ref_count(self, block_id: int) -> int:
        """Holders of a block."""
        return self._ref_counts[block_id]

    def allocate(self, num_blocks: int) -> list[int]:
        """Take blocks for new content, free ones first, then those whose time ends first.

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
                block_id = self._pop_evictable()
                self._class_numbers[block_id] = 0
                self._on_evict(block_id)
            self._ref_counts[block_id] = 1
            block_ids.append(block_id)
        return block_ids

    def acquire(self, block_id: int) -> None:
        """Add a holder to a held or kept block."""
        if self._ref_counts[block_id] == 0:
            # KeyError: the block is free, its content is gone
            del self._evictable[max(0, self._class_numbers[block_id] - 1)][block_id]
        self._ref_counts[block_id] += 1

    def release(self, block_id: int) -> None:
        """Remove a holder. Releasing a block that nobody holds is a bug of the caller and raises RuntimeError."""
        count = self._ref_counts[block_id] - 1
        if count < 0:
            raise RuntimeError(f"KV block {block_id} was released more often than it was taken")
        self._ref_counts[block_id] = count
        if count == 0:
            class_number = self._class_numbers[block_id]
            if class_number:
                self._evictable[class_number - 1][block_id] = self._clock() + self._ttl_seconds[class_number - 1]
            else:
                self._free.append(block_id)

    def keep(self, block_id: int, ttl_class: int = 0) -> None:
        """Keep the content of a held block after its last holder is gone, in this class or the one it has, whichever
        lives longer."""
        self._class_numbers[block_id] = max(self._class_numbers[block_id], ttl_class + 1)

    def forget(self, block_id: int) -> None:
        """The content of a block will not be asked for any more."""
        class_number = self._class_numbers[block_id]
        self._class_numbers[block_id] = 0
        if class_number and self._ref_counts[block_id] == 0:
            del self._evictable[class_number - 1][block_id]
            self._free.append(block_id)

    def _pop_evictable(self) -> int:
        """Take out the block whose time ends first; of equals, the one of the lowest class."""
        best = min((blocks for blocks in self._evictable if blocks), key=lambda blocks: next(iter(blocks.values())))
        return best.popitem(last=False)[0]
