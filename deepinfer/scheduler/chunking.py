"""How many prefill tokens join a step."""

from __future__ import annotations

from deepinfer.config import SchedulerConfig
from deepinfer.cost import StepCost, StepLoad

_GRAIN = 16  # matrix kernels work in tiles of at least so many rows
_MAX_URGENCY = 1.6


def compute_prefill_seconds(config: SchedulerConfig, decode_seconds: float, waited_seconds: float) -> float | None:
    """How long the prefill chunks of a step may take beside requests that decode; None for no bound.

    What the target for gaps between tokens leaves. Prompts that have waited longer than the target for first tokens
    stretch it, up to 1.6 times, and however slow the decoding rows are, chunks keep a share of the step: else a machine
    at its limit would let prompts wait for ever.

    Args:
        decode_seconds: predicted time of the step without chunks.
        waited_seconds: how long the oldest request without a first token has been there.
    """
    if config.target_itl_seconds is None:
        return None
    urgency = 1.0
    if config.target_ttft_seconds is not None:
        urgency = min(_MAX_URGENCY, max(1.0, waited_seconds / config.target_ttft_seconds))
    left = config.target_itl_seconds * config.target_utilization_ratio * urgency - decode_seconds
    least = decode_seconds * config.min_prefill_ratio / (1.0 - config.min_prefill_ratio)
    return max(left, least)


class ChunkBudget:
    """What is left of one step: tokens, and, while requests that decode share the step, time."""

    def __init__(
        self, cost: StepCost, load: StepLoad, *, max_tokens: int, prefill_seconds: float | None, min_tokens: int
    ) -> None:
        """`load` holds the decode rows of the step; chunks are added to it, and take at most `prefill_seconds`."""
        self.num_tokens = max_tokens
        self._cost = cost
        self._load = load
        self._end_seconds = None
        if prefill_seconds is not None and load.num_decode_rows:
            self._end_seconds = cost.predict(load) + prefill_seconds
        self._min_tokens = min_tokens

    def largest_chunk(self, num_remaining: int, num_computed: int) -> int:
        """Tokens of a prompt, `num_computed` of which are done, that may join; solved backwards from the time left."""
        limit = min(num_remaining, self.num_tokens)
        if self._end_seconds is None:
            return limit
        solved = self._cost.largest_chunk(self._end_seconds - self._cost.predict(self._load), num_computed)
        if solved >= limit:
            return limit
        chunk = int(solved) // _GRAIN * _GRAIN
        if self._load.num_prefill_tokens == 0:
            chunk = max(chunk, self._min_tokens)
        return min(chunk, limit)

    def take(self, num_tokens: int, num_computed: int) -> None:
        """A chunk joins the step."""
        self.num_tokens -= num_tokens
        self._load.add_prefill(num_tokens, num_computed)
