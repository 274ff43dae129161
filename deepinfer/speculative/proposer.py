"""What a proposer gives: drafts, and how sure it is of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Protocol

from deepinfer.request import Request


@dataclass(slots=True)
class Draft:
    """A guess at the next tokens of one request.

    Attributes:
        token_ids: the guess.
        confidences: for each of them the probability that it is right if all before it are.
        num_pending: tokens at its start that stand for what a step in flight gives; the drafts follow.
    """

    token_ids: list[int]
    confidences: list[float]
    num_pending: int = 0

    def survivals(self) -> list[float]:
        """For each draft the probability that it and all before it are right; never increasing."""
        return list(accumulate(self.confidences, mul))[self.num_pending :]


class Proposer(Protocol):
    """Guesses the next tokens of requests, and learns from what came.

    A draft must be a function of the tokens before it and of nothing drawn at random: then it is accepted with the
    probability that the model gives to it, and choosing by its confidence whether to verify it changes no output.
    """

    def propose(self, request: Request, max_tokens: int) -> Draft | None:
        """Guess the next tokens: the request's pending ones, and up to `max_tokens` more; None without a guess."""
        ...

    def observe(self, request: Request, num_new_tokens: int) -> None:
        """The last `num_new_tokens` tokens of the output came after the last guess, verified or not."""
        ...

    def forget(self, request_id: str) -> None:
        """Drop what is kept for a request; an unknown one is ignored."""
        ...
