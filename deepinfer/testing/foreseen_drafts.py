"""Drafts made from what is known to come out: right ones, wrong ones, and right ones that go wrong."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from deepinfer.cost import StepCost, StepLoad
from deepinfer.request import Request

KINDS = ("right", "wrong", "mixed")


class ForeseenDrafts:
    """A draft policy for tests."""

    def __init__(
        self, expected: Mapping[str, Sequence[int]], kind: str, *, vocab_size: int, max_draft_tokens: int = 15
    ) -> None:
        """`expected` maps request ids to outputs and may grow; what it does not hold is made up."""
        self.max_draft_tokens = max_draft_tokens
        self._expected = expected
        self._kind = kind
        self._vocab_size = vocab_size
        self._random = random.Random(0)

    def propose(self, requests: Sequence[Request], max_rows: int, cost: StepCost) -> dict[str, list[int]]:
        """As many drafts for each request as a die says."""
        drafts: dict[str, list[int]] = {}
        for request in requests:
            num_tokens = self._random.randint(0, min(max_rows, self.max_draft_tokens))
            max_rows -= num_tokens
            if num_tokens:
                drafts[request.request_id] = self._guess(request, request.num_pending_tokens + num_tokens)
        return drafts

    def observe_tokens(self, request: Request, num_new_tokens: int) -> None:
        """Nothing is learned."""

    def observe_step(self, load: StepLoad, num_requests: int, seconds: float) -> None:
        """Nothing is learned."""

    def forget(self, request: Request) -> None:
        """Nothing is kept for a request."""

    def _guess(self, request: Request, num_tokens: int) -> list[int]:
        kind = self._kind
        start = len(request.output_token_ids)
        known = list(self._expected.get(request.request_id, ()))[start : start + num_tokens]
        made_up = [self._random.randrange(self._vocab_size) for _ in range(num_tokens)]
        num_right = {"right": num_tokens, "wrong": 0}.get(kind, self._random.randint(0, num_tokens))
        guess = known[:num_right] + made_up[min(num_right, len(known)) :]
        if kind == "wrong" and known and guess[0] == known[0]:
            guess[0] = (guess[0] + 1) % self._vocab_size
        return guess
