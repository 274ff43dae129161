"""Configuration of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from deepinfer.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """Limits of one step and of the queue.

    Attributes:
        max_num_seqs: requests that run at the same time.
        max_num_batched_tokens: rows of one forward pass, prefill and decode together.
        max_num_waiting: requests that may wait; more are refused with QueueFullError.
        max_lookahead: waiting requests that are tried in one step when those before them cannot start.
        max_overtakes: admissions that may overtake a waiting request; then nobody behind it starts before it does.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    max_num_waiting: int = 1024
    max_lookahead: int = 16
    max_overtakes: int = 64

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_num_waiting", "max_lookahead", "max_overtakes"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a positive integer, but is {value!r}")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be at least max_num_seqs "
                f"({self.max_num_seqs}): every running request needs a row in each step"
            )
