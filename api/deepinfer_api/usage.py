"""Token counts and times of one HTTP request, as the answer reports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts; each prompt counts once, however many outputs it has."""

    num_prompt_tokens: int
    num_output_tokens: int
    num_cached_tokens: int
    num_reasoning_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """OpenAI's `usage` object."""
        return {
            "prompt_tokens": self.num_prompt_tokens,
            "completion_tokens": self.num_output_tokens,
            "total_tokens": self.num_prompt_tokens + self.num_output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.num_cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.num_reasoning_tokens},
        }


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time went. `prefill_seconds` excludes waiting; `decode_seconds` starts at the first token."""

    num_cached_tokens: int
    num_computed_prompt_tokens: int
    prefill_seconds: float
    num_output_tokens: int
    decode_seconds: float
    queue_seconds: float
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """The `timings` object in llama.cpp's words, milliseconds and tokens per second, plus `queue_ms`; counts of
        drafts stand in it only if there were any.

        The first output token belongs to the prefill, so the decode rate counts the tokens after it.
        """
        num_decoded = max(0, self.num_output_tokens - 1)
        timings = {
            "cache_n": self.num_cached_tokens,
            "prompt_n": self.num_computed_prompt_tokens,
            "prompt_ms": _milliseconds(self.prefill_seconds),
            "prompt_per_second": _rate(self.num_computed_prompt_tokens, self.prefill_seconds),
            "predicted_n": self.num_output_tokens,
            "predicted_ms": _milliseconds(self.decode_seconds),
            "predicted_per_second": _rate(num_decoded, self.decode_seconds),
            "queue_ms": _milliseconds(self.queue_seconds),
        }
        if self.num_draft_tokens:
            timings |= {"draft_n": self.num_draft_tokens, "draft_n_accepted": self.num_accepted_tokens}
        return timings


def _milliseconds(seconds: float) -> float:
    return round(max(0.0, seconds) * 1e3, 3)


def _rate(num_tokens: int, seconds: float) -> float:
    return round(num_tokens / seconds, 3) if seconds > 0 else 0.0
