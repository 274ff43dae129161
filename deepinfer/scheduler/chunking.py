"""How many prefill tokens join a step."""

from __future__ import annotations

from deepinfer.cost import StepCost, StepLoad

_GRAIN = 16  # matrix kernels work in tiles of at least so many rows


class ChunkBudget:
    """What is left of one step: tokens, and, while requests that decode share the step, time."""

    def __init__(
        self, cost: StepCost, load: StepLoad, *, max_tokens: int, target_seconds: float | None, min_tokens: int
    ) -> None:
        """`load` holds the decode rows of the step; chunks are added to it."""
        self.num_tokens = max_tokens
        self._cost = cost
        self._load = load
        self._target_seconds = target_seconds if load.num_decode_rows else None
        self._min_tokens = min_tokens

    def largest_chunk(self, num_remaining: int, num_computed: int) -> int:
        """Tokens of a prompt, `num_computed` of which are done, that may join; solved backwards from the time left."""
        limit = min(num_remaining, self.num_tokens)
        if self._target_seconds is None:
            return limit
        seconds = self._target_seconds - self._cost.predict(self._load)
        solved = self._cost.largest_chunk(seconds, num_computed)
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
