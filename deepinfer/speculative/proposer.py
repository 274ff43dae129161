"""What a proposer gives: drafts, and how sure it is of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from deepinfer.request import Request


@dataclass(slots=True)
class Draft:
    """A guess at the next tokens of one request.

    Attributes:
        token_ids: the guess.
        survivals: for each draft the probability that it and all tokens before it are right; never increasing.
        num_pending: tokens at the start that stand for what a step in flight gives; the drafts follow.
    """

    token_ids: list[int]
    survivals: list[float]
    num_pending: int = 0


class Proposer(Protocol):
    """Guesses the next tokens of requests, and learns from what came.

    A draft must be a function of the tokens before it and of nothing drawn at random: then it is accepted with the
    probability that the model gives to it, and choosing by its confidence whether to verify it changes no output.
    """

    def propose(self, request: Request, max_tokens: int, min_survival: float = 0.0) -> Draft | None:
        """Guess the next tokens: the request's pending ones, and up to `max_tokens` drafts that survive with at least
        `min_survival`; None without any."""
        ...

    def observe(self, request: Request, num_new_tokens: int) -> None:
        """The last `num_new_tokens` tokens of the output came after the last guess, verified or not."""
        ...

    def forget(self, request_id: str) -> None:
        """Drop what is kept for a request; an unknown one is ignored."""
        ...
