"""Rows whose logits are compared with the prompt's own tokens. Numpy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepinfer.executor.request_states import RequestState, ScheduledRequest
from deepinfer.outputs import ModelRunnerOutput
from deepinfer.sampling.logprobs import compute_prompt_logprobs

# Logits of a long prompt are computed in slices of this many rows: [64, vocabulary] float32 is 13 to 40 MB.
MAX_PROMPT_LOGIT_ROWS = 64


@dataclass(frozen=True, slots=True)
class PromptRows:
    """Consecutive rows of one request whose logits are compared with the prompt's next tokens.

    Attributes:
        rows: rows of the forward pass.
        token_ids: for each row, the prompt token one position later.
    """

    state: RequestState
    rows: slice
    token_ids: list[int]


def select_prompt_rows(scheduled: Sequence[ScheduledRequest], cu_seqlens_q: NDArray[np.int32]) -> Iterator[PromptRows]:
    """Rows whose logits were asked for as prompt logprobs, in slices of at most MAX_PROMPT_LOGIT_ROWS."""
    for item, first_row in zip(scheduled, cu_seqlens_q[:-1].tolist(), strict=True):
        state = item.state
        if state.sampling.params.prompt_logprobs is None:
            continue
        end = min(item.end, state.num_prompt_tokens - 1)
        for start in range(item.start, end, MAX_PROMPT_LOGIT_ROWS):
            stop = min(start + MAX_PROMPT_LOGIT_ROWS, end)
            rows = slice(first_row + start - item.start, first_row + stop - item.start)
            yield PromptRows(state, rows, state.token_ids[start + 1 : stop + 1])


def add_prompt_logprobs(output: ModelRunnerOutput, prompt_rows: PromptRows, logits: NDArray[np.float32]) -> None:
    """Append the entries of one slice to the step's output."""
    state = prompt_rows.state
    num_top = state.sampling.params.prompt_logprobs or 0
    entries = compute_prompt_logprobs(logits, prompt_rows.token_ids, num_top)
    output.prompt_logprobs.setdefault(state.request_id, []).extend(entries)
