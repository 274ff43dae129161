"""Which rows of a step need logits, and what their logits become. Numpy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepinfer.executor.request_states import RequestState, ScheduledRequest
from deepinfer.outputs import ModelRunnerOutput
from deepinfer.sampling import SampledRows, Sampler
from deepinfer.sampling.logprobs import compute_prompt_logprobs

# Logits of a long prompt are computed in slices of this many rows: [64, vocabulary] float32 is 13 to 40 MB.
MAX_PROMPT_LOGIT_ROWS = 64
NOT_FINITE = "the model computed logits that are not finite"


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


def select_sampling_rows(scheduled: Sequence[ScheduledRequest], cu_seqlens_q: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rows from which a token is chosen: the last one of each request that reached its end."""
    rows = [end - 1 for item, end in zip(scheduled, cu_seqlens_q[1:], strict=True) if item.samples_token]
    return np.asarray(rows, np.int64)


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


def choose_tokens(
    output: ModelRunnerOutput, sampler: Sampler, scheduled: Sequence[ScheduledRequest], logits: NDArray[np.float32]
) -> None:
    """Choose a token from each row of logits, append it to its request and to the step's output."""
    states = [item.state for item in scheduled if item.samples_token]
    take_tokens(output, states, sampler.sample(logits, [state.sampling for state in states]))


def take_greedy_tokens(output: ModelRunnerOutput, scheduled: Sequence[ScheduledRequest], token_ids: list[int]) -> None:
    """Take over what `ops.sample_greedy` chose for rows that need nothing but the argmax."""
    states = [item.state for item in scheduled if item.samples_token]
    errors = {index: NOT_FINITE for index, token_id in enumerate(token_ids) if token_id < 0}
    take_tokens(output, states, SampledRows(token_ids, [None] * len(states), errors))


def take_tokens(output: ModelRunnerOutput, states: Sequence[RequestState], sampled: SampledRows) -> None:
    """Append chosen tokens to their requests and to the step's output."""
    for index, state in enumerate(states):
        if index in sampled.errors:
            output.errors[state.request_id] = sampled.errors[index]
            continue
        state.token_ids.append(sampled.token_ids[index])
        output.sampled_token_ids[state.request_id] = [sampled.token_ids[index]]
        logprob = sampled.logprobs[index]
        if logprob is not None:
            output.logprobs[state.request_id] = [logprob]
