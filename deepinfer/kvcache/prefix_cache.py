"""Finds blocks whose content equals the start of a prompt, down to the single token."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from deepinfer.kvcache.block_hash import compute_block_hash

TOKEN_BYTES = 4


@dataclass(slots=True)
class _Entry:
    """What a cached block holds.

    Attributes:
        parent_hash: name of the prefix before the block.
        data: its tokens, u32 native order; fewer than a full block for a partly filled one.
        block_hash: name of the prefix including the block; None for a partly filled one.
    """

    parent_hash: bytes
    data: bytes
    block_hash: bytes | None


@dataclass(slots=True)
class _Siblings:
    """Cached blocks that continue the same prefix. `keys` is sorted: the neighbours of any token string in it are the
    blocks that share the longest start with it."""

    keys: list[bytes] = field(default_factory=list)
    block_ids: dict[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """Longest known start of a token sequence.

    Attributes:
        block_ids: full blocks, in order.
        block_hashes: their chain hashes.
        copy_source: a block whose first `num_copied_tokens` tokens continue the sequence, or None.
        num_tokens: tokens covered by blocks and copy.
        next_key: (prefix name, data) of the first full block that was not found; None at the end of the sequence.
    """

    block_ids: list[int]
    block_hashes: list[bytes]
    copy_source: int | None
    num_copied_tokens: int
    num_tokens: int
    next_key: tuple[bytes, bytes] | None = None

    def without_copy(self) -> PrefixHit:
        """Only the full blocks."""
        return PrefixHit(self.block_ids, self.block_hashes, None, 0, self.num_tokens - self.num_copied_tokens)

    def without_blocks(self) -> PrefixHit:
        """Nothing."""
        return PrefixHit([], [], None, 0, 0)


class PrefixCache:
    """Maps block contents to block ids.

    An entry whose parent was evicted stays: it is found again once the parent has been recomputed.
    """

    def __init__(self, block_size: int) -> None:
        self._block_bytes = block_size * TOKEN_BYTES
        self._block_size = block_size
        self._entries: dict[int, _Entry] = {}
        self._children: dict[bytes, _Siblings] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, block_id: int) -> bool:
        return block_id in self._entries

    def find(self, root_hash: bytes, data: bytes, max_tokens: int) -> PrefixHit:
        """Longest known start of `data` (u32 tokens), at most `max_tokens` long."""
        block_bytes = self._block_bytes
        limit = min(len(data), max_tokens * TOKEN_BYTES)
        block_ids: list[int] = []
        block_hashes: list[bytes] = []
        parent = root_hash
        start = 0
        siblings = self._children.get(parent)
        while siblings is not None and start + block_bytes <= limit:
            block_id = siblings.block_ids.get(data[start : start + block_bytes])
            if block_id is None:
                break
            block_hash = self._entries[block_id].block_hash
            assert block_hash is not None
            block_ids.append(block_id)
            block_hashes.append(block_hash)
            parent = block_hash
            start += block_bytes
            siblings = self._children.get(parent)
        copy_source, num_copied = None, 0
        if siblings is not None and start < limit:
            copy_source, num_copied = _find_longest_start(siblings, data[start : min(limit, start + block_bytes)])
        full_data = data[start : start + block_bytes]
        return PrefixHit(
            block_ids=block_ids,
            block_hashes=block_hashes,
            copy_source=copy_source,
            num_copied_tokens=num_copied,
            num_tokens=start // TOKEN_BYTES + num_copied,
            next_key=(parent, full_data) if len(full_data) == block_bytes else None,
        )

    def insert(self, block_id: int, parent_hash: bytes, data: bytes) -> tuple[bytes | None, bool]:
        """Make a block findable under its content; replaces what was known about the same block.

        Returns:
            The chain hash if the block is full, else None; and whether the block was entered (another block with the
            same content may have been there first).
        """
        block_hash = compute_block_hash(parent_hash, data) if len(data) == self._block_bytes else None
        if block_id in self._entries:
            self.remove(block_id)
        siblings = self._children.get(parent_hash)
        if siblings is None:
            siblings = self._children[parent_hash] = _Siblings()
        elif data in siblings.block_ids:
            return block_hash, False
        insort(siblings.keys, data)
        siblings.block_ids[data] = block_id
        self._entries[block_id] = _Entry(parent_hash, data, block_hash)
        return block_hash, True

    def remove(self, block_id: int) -> None:
        """Forget a block; one that is not known is ignored."""
        entry = self._entries.pop(block_id, None)
        if entry is None:
            return
        siblings = self._children[entry.parent_hash]
        del siblings.block_ids[entry.data]
        del siblings.keys[bisect_left(siblings.keys, entry.data)]
        if not siblings.keys:
            del self._children[entry.parent_hash]


def _find_longest_start(siblings: _Siblings, data: bytes) -> tuple[int | None, int]:
    """The block that shares the longest start with `data`, and how many tokens that is."""
    best_block_id, best_tokens = None, 0
    position = bisect_left(siblings.keys, data)
    for key in siblings.keys[max(0, position - 1) : position + 1]:
        num_tokens = count_common_tokens(key, data)
        if num_tokens > best_tokens:
            best_block_id, best_tokens = siblings.block_ids[key], num_tokens
    return best_block_id, best_tokens


def count_common_tokens(left: bytes, right: bytes) -> int:
    """Length of the common start of two u32 token strings, in tokens."""
    size = min(len(left), len(right))
    difference = int.from_bytes(left[:size], "little") ^ int.from_bytes(right[:size], "little")
    if difference == 0:
        return size // TOKEN_BYTES
    lowest_bit = (difference & -difference).bit_length() - 1
    return lowest_bit // (8 * TOKEN_BYTES)
