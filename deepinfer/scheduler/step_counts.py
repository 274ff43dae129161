"""What is counted while a step is planned and its result taken over."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepinfer.cost import StepLoad


@dataclass(slots=True)
class StepCounts:
    """Counts of one step.

    Attributes:
        load: what its forward pass computes; each draft counts as a decode row.
        predicted_seconds: what the cost model expects of that load.
        num_decoding: requests that get their next token; they come first in the plan.
        num_draft_tokens, num_accepted_tokens: drafts verified, and those that became output.
    """

    load: StepLoad = field(default_factory=StepLoad)
    predicted_seconds: float = 0.0
    num_decoding: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_preemptions: int = 0
    num_prefix_cache_queries: int = 0
    num_prefix_cache_hits: int = 0
