"""Plans and results that pass between scheduler, executor and caller: pure data, no behaviour, no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from deepinfer.request import FinishReason
from deepinfer.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural-log probability of one token at one position, from the raw logits (before temperature and truncation).

    Attributes:
        token_id: the token that stands at the position.
        logprob: its log probability.
        rank: 1 for the most likely token.
        top: (token_id, logprob) of the most likely tokens, most likely first, as many as were asked for.
    """

    token_id: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...] = ()


class TokenMatcher(Protocol):
    """Says which tokens may follow an output."""

    def compute_mask(self, output_token_ids: Sequence[int]) -> bytes | None:
        """One bit for each token id, the lowest bit of a byte first; None while everything is allowed.

        Raises:
            RequestError: the output does not have the required form.
        """
        ...


class TokenConstraint(Protocol):
    """A form that an output must have."""

    def make_matcher(self) -> TokenMatcher:
        """A matcher for one output, at its start."""
        ...


@dataclass(slots=True)
class NewRequestData:
    """A request that the executor does not know (new, or resumed after preemption), in full.

    Attributes:
        token_ids: prompt and, after a preemption, the output so far.
        num_prompt_tokens: how many of them are the prompt.
        block_ids: its KV blocks in order of position.
        num_computed_tokens: tokens whose KV entries already exist in those blocks.
        constraint: the form its output must have.
    """

    request_id: str
    token_ids: Sequence[int]
    num_prompt_tokens: int
    sampling_params: SamplingParams
    eos_token_ids: frozenset[int]
    block_ids: list[int]
    num_computed_tokens: int
    constraint: TokenConstraint | None = None


@dataclass(slots=True)
class KnownRequestData:
    """What changed for a request that the executor knows.

    Attributes:
        new_block_ids: blocks appended to its table.
        num_computed_tokens: tokens whose KV entries exist before this step; None means all but the last one, which the
            step before gives: it was computing when this one was planned.
        num_kept_blocks: entries that stay at the start of its table before the new ones are appended (rejected drafts
            may have given blocks back); None keeps all.
    """

    request_id: str
    new_block_ids: list[int]
    num_computed_tokens: int | None
    num_kept_blocks: int | None = None


@dataclass(slots=True)
class SchedulerOutput:
    """The plan of one step: how many tokens for whom. There is no prefill or decode in it.

    A request whose scheduled tokens reach its last known token gets one token sampled; others are mid-prefill. Behind
    the last known token there may be drafts. Each draft that equals the token sampled before it is accepted, and one
    more token is sampled after it, up to the first difference or the end of the output.

    Attributes:
        num_scheduled_tokens: request id -> tokens to process, drafts included, in the order of the batch rows.
        draft_token_ids: request id -> drafts, never empty, only for requests that reach their last known token.
        assumed_token_ids: request id -> what its output must end with for its drafts to make sense; where it does not,
            they are dropped with their rows. Only where the step before was computing when this one was planned.
        block_copies: (source block, destination block) pairs to copy, whole blocks, before the forward pass.
        preempted_request_ids, finished_request_ids: state the executor drops before the step.
    """

    scheduled_new_requests: list[NewRequestData] = field(default_factory=list)
    scheduled_known_requests: list[KnownRequestData] = field(default_factory=list)
    num_scheduled_tokens: dict[str, int] = field(default_factory=dict)
    draft_token_ids: dict[str, list[int]] = field(default_factory=dict)
    assumed_token_ids: dict[str, list[int]] = field(default_factory=dict)
    block_copies: list[tuple[int, int]] = field(default_factory=list)
    preempted_request_ids: list[str] = field(default_factory=list)
    finished_request_ids: list[str] = field(default_factory=list)

    @property
    def total_num_scheduled_tokens(self) -> int:
        """Rows of the forward pass."""
        return sum(self.num_scheduled_tokens.values())


@dataclass(slots=True)
class ModelRunnerOutput:
    """What one step produced, per scheduled request.

    Attributes:
        sampled_token_ids: request id -> tokens in order, one more than drafts accepted; an empty list or no entry for
            a request in mid-prefill.
        logprobs: request id -> one entry for each sampled token, where asked for.
        prompt_logprobs: request id -> entries for prompt positions 1.. that this step computed, where asked for.
        errors: request id -> why this request alone failed (for example logits that are not finite).
    """

    sampled_token_ids: dict[str, list[int]] = field(default_factory=dict)
    logprobs: dict[str, list[TokenLogprob]] = field(default_factory=dict)
    prompt_logprobs: dict[str, list[TokenLogprob]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStats:
    """Times and counts of one request; seconds of one monotonic clock.

    Attributes:
        arrival_time: when it reached the server (given by the caller, so it includes tokenization).
        queue_seconds: arrival until first scheduled.
        prefill_seconds: first scheduled until the first token.
        decode_seconds: first token until the end.
        num_draft_tokens: drafts that were verified.
        num_accepted_tokens: drafts among them that became output.
    """

    arrival_time: float
    queue_seconds: float
    prefill_seconds: float
    decode_seconds: float
    num_prompt_tokens: int
    num_cached_tokens: int
    num_output_tokens: int
    num_preemptions: int
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0


@dataclass(slots=True)
class EngineOutput:
    """What one step gave one request.

    Attributes:
        new_token_ids: tokens produced by this step; the token that ended the output is among them.
        logprobs: one entry for each new token, if asked for.
        prompt_logprobs: entries for prompt positions 1.., delivered once with the first output, if asked for.
        finish_reason: None while the request goes on.
        stop_token_id: the end-of-sequence or stop token that ended it, if one did.
        error_message: set when finish_reason is error.
        is_refused: whether that error lies in the request itself, so that sending it again is in vain.
        num_cached_tokens: prompt tokens found in the prefix cache.
        seed: the seed in use.
        stats: only with the last output.
    """

    request_id: str
    new_token_ids: list[int]
    finish_reason: FinishReason | None = None
    stop_token_id: int | None = None
    logprobs: list[TokenLogprob] | None = None
    prompt_logprobs: list[TokenLogprob] | None = None
    error_message: str | None = None
    is_refused: bool = False
    num_cached_tokens: int = 0
    seed: int = 0
    stats: RequestStats | None = None
