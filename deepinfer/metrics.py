"""Numbers that the engine reports about itself: plain data, no Prometheus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStats:
    """One step of the engine.

    Attributes:
        num_running, num_waiting: requests after the step.
        num_prefill_tokens, num_decode_tokens: rows of the forward pass.
        num_prefix_cache_queries, num_prefix_cache_hits: tokens looked up and found by requests admitted in this step.
        kv_cache_usage_ratio: blocks in use by requests / all blocks, 0..1.
        step_seconds: schedule + execute + update.
        execute_seconds: the model's share of it.
        predicted_seconds: what the cost model expected for the step before it ran.
        num_draft_tokens, num_accepted_tokens: drafts verified in this step (they are decode tokens, too), and those of
            them that became output.
        verify_lens: rows of each request that decoded in this step, 1 without drafts; empty without speculation.
    """

    num_running: int
    num_waiting: int
    num_prefill_tokens: int
    num_decode_tokens: int
    num_preemptions: int
    num_prefix_cache_queries: int
    num_prefix_cache_hits: int
    kv_cache_usage_ratio: float
    step_seconds: float
    execute_seconds: float
    predicted_seconds: float = 0.0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    verify_lens: tuple[int, ...] = ()
