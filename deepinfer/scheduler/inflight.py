"""Steps from their plan until their result was taken over, and what they mean to the requests in them.

At most two are in flight: one that computes, and one that was planned behind it before its result was known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deepinfer.outputs import SchedulerOutput
from deepinfer.request import Request
from deepinfer.scheduler.step_counts import StepCounts


@dataclass(slots=True)
class InflightStep:
    """One step.

    Attributes:
        requests: who has rows, in the order of the plan.
        copy_sources: blocks held until they have been copied.
        is_noted: whether its requests know of it. That costs time, and matters only to a step planned behind another.
    """

    plan: SchedulerOutput = field(default_factory=SchedulerOutput)
    requests: list[Request] = field(default_factory=list)
    copy_sources: list[int] = field(default_factory=list)
    counts: StepCounts = field(default_factory=StepCounts)
    is_noted: bool = False

    def take_off(self) -> None:
        """Note at each request that the step is in flight, if that was not done."""
        if self.is_noted:
            return
        self.is_noted = True
        drafts = self.plan.draft_token_ids
        for request, num_rows in zip(self.requests, self.plan.num_scheduled_tokens.values(), strict=True):
            num_known = len(request.prompt_token_ids) + len(request.output_token_ids)
            request.num_inflight_steps += 1
            request.num_inflight_rows += num_rows
            # A row behind a pending token is behind the last known one, too.
            if request.num_computed_tokens + request.num_inflight_rows >= num_known:
                has_drafts = drafts and request.request_id in drafts
                request.num_pending_tokens = 1 + len(drafts[request.request_id]) if has_drafts else 1


def land(request: Request, num_rows: int) -> None:
    """Note at a request that the oldest of its steps, with so many rows of it, is in flight no more."""
    request.num_inflight_steps -= 1
    if request.num_inflight_steps:
        request.num_inflight_rows -= num_rows
    else:
        request.num_inflight_rows = request.num_pending_tokens = 0


def list_decoding(decoding: Sequence[Request], prefilling: Sequence[Request]) -> list[Request]:
    """Requests that get their next token, those included that a step in flight will bring so far.

    Who gets the last token from that step has no further row. Who is found to have ended otherwise has computed one in
    vain.
    """
    candidates = [*decoding, *(request for request in prefilling if request.num_pending_tokens)]
    return [
        request
        for request in candidates
        if not request.num_pending_tokens or len(request.output_token_ids) + 1 < request.max_output_tokens
    ]
