"""BlockPool against a model that keeps each block's state in plain sets."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deepinfer.errors import OutOfBlocksError
from deepinfer.kvcache import BlockPool

NUM_BLOCKS = 7
TTL_SECONDS = (1.0, 5.0, 20.0)


class BlockPoolMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.evicted = []
        self.now = 0.0
        self.pool = BlockPool(NUM_BLOCKS, self.evicted.append, ttl_seconds=TTL_SECONDS, clock=lambda: self.now)
        self.holders = dict.fromkeys(range(NUM_BLOCKS), 0)
        self.kept = {}  # block -> class
        self.released_order = []  # kept blocks without holder, oldest first
        self.ends = {}  # of these, when their time ends

    @rule(count=st.integers(0, NUM_BLOCKS + 1))
    def allocate(self, count):
        available = sum(1 for number in self.holders.values() if number == 0)
        if count > available:
            with pytest.raises(OutOfBlocksError):
                self.pool.allocate(count)
            return
        self.evicted.clear()
        block_ids = self.pool.allocate(count)
        assert len(set(block_ids)) == count
        num_free = available - len(self.released_order)
        leaving = sorted(self.released_order, key=lambda b: (self.ends[b], self.kept[b]))
        expected = leaving[: max(0, count - num_free)]
        assert self.evicted == expected, "free blocks go first, then those whose time ends first"
        for block_id in expected:
            self.released_order.remove(block_id)
            del self.kept[block_id]
        for block_id in block_ids:
            assert self.holders[block_id] == 0
            assert block_id not in self.kept
            self.holders[block_id] = 1

    @precondition(lambda self: any(self.holders.values()))
    @rule(data=st.data())
    def release(self, data):
        block_id = data.draw(st.sampled_from([b for b, n in self.holders.items() if n]))
        self.pool.release(block_id)
        self.holders[block_id] -= 1
        if not self.holders[block_id] and block_id in self.kept:
            self.released_order.append(block_id)
            self.ends[block_id] = self.now + TTL_SECONDS[self.kept[block_id]]

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0]))
    def wait(self, seconds):
        self.now += seconds

    @precondition(lambda self: any(self.holders.values()) or self.released_order)
    @rule(data=st.data())
    def acquire(self, data):
        usable = [b for b, n in self.holders.items() if n or b in self.released_order]
        block_id = data.draw(st.sampled_from(usable))
        self.pool.acquire(block_id)
        self.holders[block_id] += 1
        if block_id in self.released_order:
            self.released_order.remove(block_id)

    @precondition(lambda self: any(self.holders.values()))
    @rule(data=st.data(), ttl_class=st.integers(0, 2))
    def keep(self, data, ttl_class):
        block_id = data.draw(st.sampled_from([b for b, n in self.holders.items() if n]))
        self.pool.keep(block_id, ttl_class)
        self.kept[block_id] = max(ttl_class, self.kept.get(block_id, 0))

    @rule(block_id=st.integers(0, NUM_BLOCKS - 1))
    def forget(self, block_id):
        self.pool.forget(block_id)
        self.kept.pop(block_id, None)
        if block_id in self.released_order:
            self.released_order.remove(block_id)

    @rule(block_id=st.integers(0, NUM_BLOCKS - 1))
    def release_of_unheld_block_is_refused(self, block_id):
        if self.holders[block_id] == 0:
            with pytest.raises(RuntimeError, match="more often"):
                self.pool.release(block_id)

    @invariant()
    def counts_agree(self):
        assert [self.pool.ref_count(b) for b in range(NUM_BLOCKS)] == list(self.holders.values())
        assert self.pool.num_available == sum(1 for n in self.holders.values() if n == 0)
        assert self.pool.num_evictable == len(self.released_order)


BlockPoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestBlockPool = BlockPoolMachine.TestCase
