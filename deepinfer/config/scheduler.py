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
        max_wait_seconds: requests that have waited longer get every second admission, the longest waiting first,
            whatever their priority and their client's share.
        target_itl_seconds: how long a step that serves running requests may take: bounds the prefill tokens that join
            it. None sets no bound but max_num_batched_tokens.
        target_ttft_seconds: requests that wait longer than this for their first token stretch that bound, up to
            1.6 times. None: they do not.
        target_utilization_ratio: share of `target_itl_seconds` that a step is planned to take; the rest is for steps
            that take longer than predicted.
        min_prefill_ratio: share of a step's time that waiting prompts get even if the target leaves less.
        overlap_scheduling: plan each step while the one before computes, in a thread of its own. Outputs are the same.
        min_prefill_tokens: prefill tokens that join a step even if the target leaves no room, so that prompts get on.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    max_num_waiting: int = 1024
    max_lookahead: int = 16
    max_overtakes: int = 64
    max_wait_seconds: float = 20.0
    target_itl_seconds: float | None = 0.25
    target_ttft_seconds: float | None = 2.0
    target_utilization_ratio: float = 0.9
    min_prefill_ratio: float = 0.5
    min_prefill_tokens: int = 16
    overlap_scheduling: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_num_waiting", "max_lookahead", "max_overtakes",
                     "min_prefill_tokens"):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a positive integer, but is {value!r}")
        for name in ("max_wait_seconds", "target_itl_seconds", "target_ttft_seconds"):
            seconds = getattr(self, name)
            if seconds is not None and not 0.0 < seconds < float("inf"):
                raise ConfigError(f"{name} must be a positive number of seconds, but is {seconds!r}")
        if not 0.0 < self.target_utilization_ratio <= 1.0:
            raise ConfigError(f"target_utilization_ratio must be in (0, 1], but is {self.target_utilization_ratio!r}")
        if not 0.0 <= self.min_prefill_ratio < 1.0:
            raise ConfigError(f"min_prefill_ratio must be in [0, 1), but is {self.min_prefill_ratio!r}")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be at least max_num_seqs "
                f"({self.max_num_seqs}): every running request needs a row in each step"
            )
