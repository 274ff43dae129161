"""Plans to request states to the arrays of a forward pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepinfer.executor.input_batch import make_input_batch
from deepinfer.executor.request_states import RequestStates
from deepinfer.outputs import KnownRequestData, NewRequestData, SchedulerOutput
from deepinfer.sampling_params import SamplingParams

BLOCK_SIZE = 16


def new_request(name, token_ids, block_ids, num_computed=0, num_prompt=None):
    return NewRequestData(
        request_id=name,
        token_ids=token_ids,
        num_prompt_tokens=len(token_ids) if num_prompt is None else num_prompt,
        sampling_params=SamplingParams(),
        eos_token_ids=frozenset({2}),
        block_ids=block_ids,
        num_computed_tokens=num_computed,
    )


def test_prefill_and_decode_rows_in_one_batch():
    states = RequestStates()
    states.apply(SchedulerOutput([new_request("a", list(range(100, 117)), [5, 2])], num_scheduled_tokens={"a": 17}))
    plan = SchedulerOutput(
        scheduled_new_requests=[new_request("b", list(range(200, 240)), [9, 8, 7], num_computed=14)],
        scheduled_known_requests=[KnownRequestData("a", [], 16)],
        num_scheduled_tokens={"a": 1, "b": 4},
    )
    scheduled = states.apply(plan)
    batch = make_input_batch(scheduled, BLOCK_SIZE)
    assert [item.samples_token for item in scheduled] == [True, False]
    assert batch.input_ids.tolist() == [116, 214, 215, 216, 217]
    assert batch.positions.tolist() == [16, 14, 15, 16, 17]
    assert batch.slot_mapping.tolist() == [2 * 16, 9 * 16 + 14, 9 * 16 + 15, 8 * 16, 8 * 16 + 1]
    assert batch.block_table.tolist() == [[5, 2], [9, 8]]
    assert batch.cu_seqlens_q.tolist() == [0, 1, 5]
    assert batch.seq_lens.tolist() == [17, 18]
    assert {array.dtype for array in (batch.block_table, batch.cu_seqlens_q, batch.seq_lens)} == {np.dtype(np.int32)}


def test_an_empty_plan_makes_empty_arrays():
    batch = make_input_batch([], BLOCK_SIZE)
    assert batch.input_ids.shape == (0,)
    assert batch.block_table.shape == (0, 0)
    assert batch.cu_seqlens_q.tolist() == [0]


def test_requests_are_dropped_and_resumed():
    states = RequestStates()
    states.apply(SchedulerOutput([new_request("a", [1, 2, 3], [0]), new_request("b", [4], [1])]))
    states.apply(SchedulerOutput(preempted_request_ids=["a"], finished_request_ids=["b", "never-known"]))
    assert len(states) == 0
    resumed = new_request("a", [1, 2, 3, 9], [4], num_computed=1, num_prompt=3)
    (item,) = states.apply(SchedulerOutput([resumed], num_scheduled_tokens={"a": 3}))
    assert (item.start, item.end, item.samples_token) == (1, 4, True)
    assert item.state.num_prompt_tokens == 3


def test_a_request_named_as_preempted_and_new_starts_again():
    states = RequestStates()
    states.apply(SchedulerOutput([new_request("a", [1, 2], [0])]))
    plan = SchedulerOutput(
        [new_request("a", [1, 2, 3], [7])], num_scheduled_tokens={"a": 3}, preempted_request_ids=["a"]
    )
    (item,) = states.apply(plan)
    assert item.state.block_ids == [7]


def test_the_plan_is_not_kept():
    """Lists of the scheduler are copied: it goes on editing them."""
    states, token_ids, block_ids = RequestStates(), [1, 2], [3]
    (item,) = states.apply(SchedulerOutput([new_request("a", token_ids, block_ids)], num_scheduled_tokens={"a": 2}))
    item.state.token_ids.append(4)
    states.apply(SchedulerOutput([], [KnownRequestData("a", [5], 2)], num_scheduled_tokens={"a": 1}))
    assert (token_ids, block_ids) == ([1, 2], [3])
    assert item.state.block_ids == [3, 5]


@pytest.mark.parametrize(("num_tokens", "blocks"), [(21, [0, 1]), (20, [0])])
def test_a_plan_beyond_tokens_or_blocks_is_an_error(num_tokens, blocks):
    states = RequestStates()
    new = new_request("long", list(range(20)), blocks)
    scheduled = states.apply(SchedulerOutput([new], num_scheduled_tokens={"long": num_tokens}))
    with pytest.raises(ValueError, match="of request long, which has 20 tokens"):
        make_input_batch(scheduled, BLOCK_SIZE)


@given(
    st.lists(
        st.tuples(st.integers(1, 70), st.integers(0, 69), st.integers(1, 70)).filter(lambda x: x[1] < x[0]),
        min_size=1,
        max_size=6,
    )
)
def test_every_row_has_its_own_slot_in_its_own_block(requests):
    states, new, counts, next_block = RequestStates(), [], {}, 0
    for index, (length, computed, wanted) in enumerate(requests):
        blocks = list(range(next_block, next_block + -(-length // BLOCK_SIZE)))[::-1]
        next_block += len(blocks)
        new.append(new_request(str(index), [index] * length, blocks, num_computed=computed))
        counts[str(index)] = min(wanted, length - computed)
    scheduled = states.apply(SchedulerOutput(new, num_scheduled_tokens=counts))
    batch = make_input_batch(scheduled, BLOCK_SIZE)
    assert len(set(batch.slot_mapping.tolist())) == len(batch.input_ids) == sum(counts.values())
    for index, item in enumerate(scheduled):
        rows = slice(batch.cu_seqlens_q[index], batch.cu_seqlens_q[index + 1])
        assert batch.input_ids[rows].tolist() == [index] * item.num_tokens
        assert batch.positions[rows].tolist() == list(range(item.start, item.end))
        assert batch.seq_lens[index] == item.end
        for position, slot in zip(batch.positions[rows], batch.slot_mapping[rows], strict=True):
            assert divmod(slot, BLOCK_SIZE) == (item.state.block_ids[position // BLOCK_SIZE], position % BLOCK_SIZE)
