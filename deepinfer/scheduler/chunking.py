"""How many prefill tokens join a step."""

from __future__ import annotations

import enum

from deepinfer.config import SchedulerConfig
from deepinfer.cost import StepCost, StepLoad

_GRAIN = 16  # matrix kernels work in tiles of at least so many rows
_LEAST_SPLIT = 4 * _GRAIN
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


class ChunkPhase(enum.Enum):
    """Prompts that get chunks of a step: the one that has been computed for the longest time, the others that are being
    computed, and those that wait to start; of the latter two first the short ones alone."""

    SHORT_OTHERS = "short others"
    SHORT_NEW = "short new"
    OLDEST = "oldest"
    OTHERS = "others"
    NEW = "new"


def order_phases(*, has_others: bool, has_new: bool, is_tight: bool, turn: int) -> list[tuple[ChunkPhase, float]]:
    """In which order prompts get chunks, each with the share of the budget that may be used up to and with it.

    A prompt that is short beside the oldest one does not wait until that is through, but the oldest keeps half. Prompts
    of about the same length go one after the other: sharing would only delay the first. A budget too small to be split
    goes to the short ones every second time.

    Args:
        turn: number of the step among those that had prompts in progress.
    """
    short = [
        phase
        for phase, is_there in ((ChunkPhase.SHORT_OTHERS, has_others), (ChunkPhase.SHORT_NEW, has_new))
        if is_there
    ]
    if is_tight:
        shares = [(short[turn // 2 % len(short)], 1.0)] if short and turn % 2 else []
    else:
        shares = [(phase, 0.5 * (index + 1) / len(short)) for index, phase in enumerate(short)]
    return [*shares, (ChunkPhase.OLDEST, 1.0), (ChunkPhase.OTHERS, 1.0), (ChunkPhase.NEW, 1.0)]


class ChunkBudget:
    """What is left of one step: tokens, and, while requests that decode share the step, time."""

    def __init__(
        self, cost: StepCost, load: StepLoad, *, max_tokens: int, prefill_seconds: float | None, min_tokens: int
    ) -> None:
        """`load` holds the decode rows of the step; chunks are added to it, and take at most `prefill_seconds`."""
        self.num_tokens = max_tokens
        self._max_tokens = max_tokens
        self._cost = cost
        self._load = load
        self._decode_seconds = cost.predict(load)
        self._prefill_seconds = prefill_seconds if load.num_decode_rows else None
        self._min_tokens = min_tokens
        self._share = 1.0

    @property
    def is_tight(self) -> bool:
        """Whether what is left is too little to be split."""
        return self.largest_chunk(self._max_tokens, 0) < _LEAST_SPLIT

    def limit(self, share: float) -> None:
        """From now on at most this share of the whole budget may be used, what is used already included."""
        self._share = share

    def largest_chunk(self, num_remaining: int, num_computed: int) -> int:
        """Tokens of a prompt, `num_computed` of which are done, that may join; solved backwards from the time left."""
        num_held_back = int((1.0 - self._share) * self._max_tokens)
        limit = max(0, min(num_remaining, self.num_tokens - num_held_back))
        if self._prefill_seconds is None:
            return limit
        end_seconds = self._decode_seconds + self._share * self._prefill_seconds
        solved = self._cost.largest_chunk(end_seconds - self._cost.predict(self._load), num_computed)
        if solved >= limit:
            return limit
        chunk = int(solved) // _GRAIN * _GRAIN
        if self._load.num_prefill_tokens == 0 and self._share == 1.0:
            chunk = max(chunk, self._min_tokens)
        return min(chunk, limit)

    def take(self, num_tokens: int, num_computed: int) -> None:
        """A chunk joins the step."""
        self.num_tokens -= num_tokens
        self._load.add_prefill(num_tokens, num_computed)
