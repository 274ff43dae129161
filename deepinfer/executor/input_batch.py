"""From scheduled requests to the arrays of one forward pass. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepinfer.executor.request_states import ScheduledRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBatch:
    """T rows of R requests; the rows of a request are consecutive and in order of position.

    Attributes:
        input_ids: int64 [T].
        positions: int64 [T].
        slot_mapping: int64 [T], block_id * block_size + offset.
        block_table: int32 [R, B]; entries past a request's blocks are 0 and never read.
        cu_seqlens_q: int32 [R + 1], first row of each request, and T.
        seq_lens: int32 [R], tokens of each request including this step's rows.
    """

    input_ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    slot_mapping: NDArray[np.int64]
    block_table: NDArray[np.int32]
    cu_seqlens_q: NDArray[np.int32]
    seq_lens: NDArray[np.int32]


def make_input_batch(scheduled: Sequence[ScheduledRequest], block_size: int) -> InputBatch:
    """Arrays for the scheduled requests, in their order.

    Raises:
        ValueError: a request has fewer tokens or blocks than the plan wants to compute; the message names it.
    """
    for item in scheduled:
        state = item.state
        num_tokens = len(state.token_ids) + len(item.draft_token_ids)
        if item.end > num_tokens or item.end > len(state.block_ids) * block_size:
            raise ValueError(
                f"the plan computes {item.end} tokens of request {state.request_id}, which has "
                f"{num_tokens} tokens and {len(state.block_ids)} blocks of {block_size}"
            )
    num_rows = sum(item.num_tokens for item in scheduled)
    width = max((-(-item.end // block_size) for item in scheduled), default=0)
    input_ids = np.empty(num_rows, np.int64)
    positions = np.empty(num_rows, np.int64)
    slot_mapping = np.empty(num_rows, np.int64)
    block_table = np.zeros((len(scheduled), width), np.int32)
    cu_seqlens_q = np.zeros(len(scheduled) + 1, np.int32)
    row = 0
    for index, item in enumerate(scheduled):
        rows = slice(row, row + item.num_tokens)
        num_blocks = -(-item.end // block_size)
        input_ids[rows] = item.row_token_ids
        positions[rows] = np.arange(item.start, item.end)
        block_table[index, :num_blocks] = item.state.block_ids[:num_blocks]
        block, offset = np.divmod(positions[rows], block_size)
        slot_mapping[rows] = block_table[index, block].astype(np.int64) * block_size + offset
        row += item.num_tokens
        cu_seqlens_q[index + 1] = row
    return InputBatch(
        input_ids=input_ids,
        positions=positions,
        slot_mapping=slot_mapping,
        block_table=block_table,
        cu_seqlens_q=cu_seqlens_q,
        seq_lens=np.fromiter((item.end for item in scheduled), np.int32, len(scheduled)),
    )
