"""What the scheduler asks of speculation, and how much room it gives to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from deepinfer.config import SchedulerConfig
from deepinfer.cost import StepCost, StepLoad
from deepinfer.request import Request


class DraftPolicy(Protocol):
    """Guesses the next tokens of requests. A guess costs a row; it never changes what comes out."""

    @property
    def max_draft_tokens(self) -> int:
        """Drafts that one request gets at most; fewer than a block holds."""
        ...

    def propose(self, requests: Sequence[Request], max_rows: int, cost: StepCost) -> Mapping[str, list[int]]:
        """Drafts of the next step.

        Args:
            requests: those that decode in the step.
            max_rows: drafts of all requests together.
            cost: what steps are expected to take.

        Returns:
            Request id -> the tokens that should follow its known ones. The first `num_pending_tokens` of the request
            stand for what a step in flight gives, those behind them are the drafts. Requests without drafts may be
            missing. The lists belong to the caller.
        """
        ...

    def observe_tokens(self, request: Request, num_new_tokens: int) -> None:
        """A request that was among `requests` got its next tokens, which are in its output now."""
        ...

    def observe_step(self, load: StepLoad, num_requests: int, seconds: float) -> None:
        """A step took so long; `load` counts each draft as a decode row more."""
        ...

    def forget(self, request: Request) -> None:
        """A request has ended or was preempted; unknown ones are ignored."""
        ...


def clip_drafts(draft_token_ids: list[int], request: Request, num_covered_tokens: int) -> None:
    """Drop drafts that could only lead beyond the last output token, or that have no block.

    Args:
        draft_token_ids: drafts that follow the pending tokens.
        num_covered_tokens: positions for which the request has or gets blocks; its next row is among them.
    """
    num_left = request.max_output_tokens - len(request.output_token_ids) - request.num_pending_tokens
    num_free = num_covered_tokens - request.num_tokens - request.num_pending_tokens
    del draft_token_ids[max(0, min(num_left - 1, num_free)) :]


def count_draft_rows(config: SchedulerConfig, num_decoding: int, *, has_prompts: bool) -> int:
    """Rows that a step has for drafts; prompts that want to get on keep the fewest rows they may have."""
    num_rows = config.max_num_batched_tokens - num_decoding
    return max(0, num_rows - config.min_prefill_tokens if has_prompts else num_rows)
