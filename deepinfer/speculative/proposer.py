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
        confidences: for each of them the probability that it is accepted if all before it are.
    """

    token_ids: list[int]
    confidences: list[float]

    def survivals(self) -> list[float]:
        """For each draft the probability that it and all before it are accepted; never increasing."""
        product = 1.0
        result = []
        for confidence in self.confidences:
            product *= confidence
            result.append(product)
        return result


class Proposer(Protocol):
    """Guesses the next tokens of requests, and learns from what came.

    A draft must be a function of the tokens before it and of nothing drawn at random: then it is accepted with the
    probability that the model gives to it, and choosing by its confidence whether to verify it changes no output.
    """

    def propose(self, request: Request, max_tokens: int) -> Draft | None:
        """Guess the next tokens, at most `max_tokens`; None without a guess."""
        ...

    def observe(self, request: Request, num_new_tokens: int) -> None:
        """The last `num_new_tokens` tokens of the output came after the last guess, verified or not."""
        ...

    def forget(self, request_id: str) -> None:
        """Drop what is kept for a request; an unknown one is ignored."""
        ...
