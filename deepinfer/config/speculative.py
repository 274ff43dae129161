"""Configuration of speculative decoding."""

from __future__ import annotations

from dataclasses import dataclass

from deepinfer.errors import ConfigError

PROPOSERS = ("off", "ngram")
MAX_DRAFT_TOKENS = 15  # with the token before them they fit the smallest block, so at most one block is taken for them


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculativeConfig:
    """Who guesses tokens ahead, and how many guesses are verified.

    Attributes:
        proposer: "off", or "ngram": what followed the last tokens when they occurred before in prompt or output.
        num_draft_tokens: drafts verified whenever there are so many; None chooses for each request and step as many as
            make the most tokens per second of expected acceptance and measured step times.
    """

    proposer: str = "off"
    num_draft_tokens: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError when a value is out of range."""
        if self.proposer not in PROPOSERS:
            raise ConfigError(f"speculation must be one of {', '.join(PROPOSERS)}, but is {self.proposer!r}")
        count = self.num_draft_tokens
        if count is not None and (not isinstance(count, int) or not 1 <= count <= MAX_DRAFT_TOKENS):
            raise ConfigError(f"num_draft_tokens must be auto or in [1, {MAX_DRAFT_TOKENS}], but is {count!r}")
