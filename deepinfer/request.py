"""One sequence of tokens on its way through the engine. Knows ids only, no text and no tensors."""

from __future__ import annotations

import enum
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepinfer.sampling_params import SamplingParams

if TYPE_CHECKING:
    from deepinfer.outputs import TokenConstraint, TokenLogprob


class FinishReason(enum.StrEnum):
    """Why a request ended, as the protocols see it."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class RequestStatus(enum.IntEnum):
    """Life of a request; everything after PREEMPTED is finished."""

    WAITING = 0
    RUNNING = 1
    PREEMPTED = 2
    FINISHED_STOPPED = 3
    FINISHED_LENGTH = 4
    FINISHED_ABORTED = 5
    FINISHED_ERROR = 6

    @property
    def is_finished(self) -> bool:
        """Whether no more tokens will come."""
        return self > RequestStatus.PREEMPTED


FINISH_REASONS = {
    RequestStatus.FINISHED_STOPPED: FinishReason.STOP,
    RequestStatus.FINISHED_LENGTH: FinishReason.LENGTH,
    RequestStatus.FINISHED_ABORTED: FinishReason.ABORT,
    RequestStatus.FINISHED_ERROR: FinishReason.ERROR,
}


@dataclass(slots=True, eq=False)
class Request:
    """State of one request in the scheduler.

    Attributes:
        request_id: unique among unfinished requests.
        prompt_token_ids: the prompt, typecode "I"; never changed.
        sampling_params: with `seed` always set.
        eos_token_ids: ids that end the output unless `ignore_eos`.
        arrival_time: monotonic seconds when the request reached the server.
        output_token_ids: what was produced so far.
        block_ids: its KV blocks in order of position; owned by the KV cache manager.
        block_hashes: chain hashes of its full blocks, as far as they were needed.
        prompt_logprobs: entries collected so far for prompt positions 1.. .
        num_computed_tokens: tokens of prompt + output whose KV entries exist.
        num_cached_tokens: prompt tokens that the prefix cache gave at the first admission.
        num_draft_tokens, num_accepted_tokens: drafts verified for it, and those that became output.
        max_output_tokens: bound from max_tokens and the context.
        num_inflight_steps: steps with rows of it whose result is not there yet.
        num_inflight_rows: those rows.
        num_pending_tokens: the most output tokens that the latest of those steps can give; 0 if it gives none.
        constraint: the form its output must have.
        client_key: whose request it is; clients share the engine fairly.
        queue_key: place in the waiting queue (priority, fair share, arrival), lower first; given by the queue and kept
            over preemptions.
        estimated_cost: seconds that the queue charged the client for it.
        num_overtakes: admissions of requests behind it while it waited.
    """

    request_id: str
    prompt_token_ids: array[int]
    sampling_params: SamplingParams
    eos_token_ids: frozenset[int]
    arrival_time: float
    max_output_tokens: int
    status: RequestStatus = RequestStatus.WAITING
    output_token_ids: list[int] = field(default_factory=list)
    block_ids: list[int] = field(default_factory=list)
    block_hashes: list[bytes] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    num_preemptions: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_inflight_steps: int = 0
    num_inflight_rows: int = 0
    num_pending_tokens: int = 0
    constraint: TokenConstraint | None = None
    client_key: str = ""
    queue_key: tuple[int, float, int] = (0, 0.0, 0)
    estimated_cost: float = 0.0
    num_overtakes: int = 0
    stop_token_id: int | None = None
    error_message: str | None = None
    first_scheduled_time: float | None = None
    first_token_time: float | None = None
    finished_time: float | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens of prompt and output."""
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    @property
    def num_missing_tokens(self) -> int:
        """Tokens of prompt and output that no step has computed or computes."""
        return self.num_tokens - self.num_computed_tokens - self.num_inflight_rows

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt_token_ids)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the request ended; None while it goes on."""
        return FINISH_REASONS.get(self.status)
