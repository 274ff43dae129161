"""What is counted while a step is planned and its result taken over."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from deepinfer.cost import StepLoad
from deepinfer.metrics import StepStats
from deepinfer.outputs import SchedulerOutput


@dataclass(slots=True)
class StepCounts:
    """Counts of one step.

    Attributes:
        load: what its forward pass computes; each draft counts as a decode row.
        predicted_seconds: what the cost model expects of that load.
        num_decoding: requests that get their next token; they come first in the plan.
        has_drafts: whether speculation is on.
        num_draft_tokens, num_accepted_tokens: drafts verified, and those that became output.
    """

    load: StepLoad = field(default_factory=StepLoad)
    predicted_seconds: float = 0.0
    num_decoding: int = 0
    has_drafts: bool = False
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_preemptions: int = 0
    num_prefix_cache_queries: int = 0
    num_prefix_cache_hits: int = 0

    def make_stats(
        self,
        plan: SchedulerOutput,
        *,
        num_running: int,
        num_waiting: int,
        kv_cache_usage_ratio: float,
        step_seconds: float,
        execute_seconds: float,
    ) -> StepStats:
        """The numbers of the step with this plan."""
        row_counts = plan.num_scheduled_tokens.values()
        return StepStats(
            num_running=num_running,
            num_waiting=num_waiting,
            num_prefill_tokens=self.load.num_prefill_tokens,
            num_decode_tokens=plan.total_num_scheduled_tokens - self.load.num_prefill_tokens,
            num_preemptions=self.num_preemptions,
            num_prefix_cache_queries=self.num_prefix_cache_queries,
            num_prefix_cache_hits=self.num_prefix_cache_hits,
            kv_cache_usage_ratio=kv_cache_usage_ratio,
            step_seconds=step_seconds,
            execute_seconds=execute_seconds,
            predicted_seconds=self.predicted_seconds,
            num_draft_tokens=self.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens,
            verify_lens=tuple(islice(row_counts, self.num_decoding)) if self.has_drafts else (),
        )
