"""How long a step takes, as a function of what is in it. Knows no clock, no device, no policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

NUM_TERMS = 5


@dataclass(slots=True)
class StepLoad:
    """What one forward pass computes; a sum over its requests.

    Attributes:
        num_prefill_tokens: n, tokens of prefill chunks.
        num_prefill_pairs: sum of n * (c + n / 2) over the chunks, c being the tokens computed before the chunk.
        num_decode_rows: requests that get their next token.
        num_decode_pairs: sum of their tokens so far.
    """

    num_prefill_tokens: int = 0
    num_prefill_pairs: float = 0.0
    num_decode_rows: int = 0
    num_decode_pairs: int = 0

    def add_prefill(self, num_tokens: int, num_cached_tokens: int) -> None:
        """Add a chunk of `num_tokens` behind `num_cached_tokens`."""
        self.num_prefill_tokens += num_tokens
        self.num_prefill_pairs += num_tokens * (num_cached_tokens + 0.5 * num_tokens)

    def terms(self) -> tuple[float, float, float, float, float]:
        """Factors of the five coefficients of `StepCost`."""
        return (
            1.0,
            float(self.num_prefill_tokens),
            self.num_prefill_pairs,
            float(self.num_decode_rows),
            float(self.num_decode_pairs),
        )


@dataclass(frozen=True, slots=True)
class StepCost:
    """T = t0 + a n + b n (c + n / 2) + d s, with s decode rows whose attention has a coefficient of its own: it reads
    memory where a chunk multiplies matrices. All coefficients are in seconds and >= 0.
    """

    base_seconds: float
    prefill_token_seconds: float
    prefill_pair_seconds: float
    decode_row_seconds: float
    decode_pair_seconds: float

    def predict(self, load: StepLoad) -> float:
        """Seconds of a step."""
        return (
            self.base_seconds
            + self.prefill_token_seconds * load.num_prefill_tokens
            + self.prefill_pair_seconds * load.num_prefill_pairs
            + self.decode_row_seconds * load.num_decode_rows
            + self.decode_pair_seconds * load.num_decode_pairs
        )

    def predict_prefill(self, num_tokens: int, num_cached_tokens: int) -> float:
        """Seconds that a chunk adds to a step."""
        pairs = num_tokens * (num_cached_tokens + 0.5 * num_tokens)
        return self.prefill_token_seconds * num_tokens + self.prefill_pair_seconds * pairs

    def predict_decode(self, num_tokens: int, num_cached_tokens: int) -> float:
        """Seconds that `num_tokens` decode rows of one request add to as many steps."""
        pairs = num_tokens * (num_cached_tokens + 0.5 * num_tokens)
        return self.decode_row_seconds * num_tokens + self.decode_pair_seconds * pairs

    def largest_chunk(self, seconds: float, num_cached_tokens: int) -> float:
        """The largest n with a n + b n (c + n / 2) <= seconds, as a real number; infinity if chunks cost nothing.

        The root of b/2 n^2 + (a + b c) n - seconds = 0, in the form without cancellation.
        """
        if seconds <= 0.0:
            return 0.0
        linear = self.prefill_token_seconds + self.prefill_pair_seconds * num_cached_tokens
        denominator = linear + math.sqrt(linear * linear + 2.0 * self.prefill_pair_seconds * seconds)
        return 2.0 * seconds / denominator if denominator > 0.0 else math.inf
