"""Drafts copied from where the last tokens occurred before: prompt lookup. Quotes, edits and loops are full of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepinfer.request import Request
from deepinfer.speculative.confidence import AcceptanceTable, classify_agreement, classify_record
from deepinfer.speculative.proposer import Draft
from deepinfer.speculative.token_index import TokenIndex

_RECORD_DECAY = 0.85


@dataclass(slots=True)
class _RequestState:
    """One request.

    Attributes:
        record: share of its drafts that were right lately.
        guess: the guess not yet judged; empty without one.
        length, agreement, record_class: what its confidence rested on.
    """

    index: TokenIndex = field(default_factory=TokenIndex)
    record: float | None = None
    guess: list[int] = field(default_factory=list)
    length: int = 0
    agreement: int = 0
    record_class: int = 0


class NgramProposer:
    """Guesses by copying, and keeps count of how it did. Every guess is judged by the tokens that come, verified or
    not, so that confidences stay right where nothing is worth verifying."""

    def __init__(self) -> None:
        self.table = AcceptanceTable()
        self._states: dict[str, _RequestState] = {}

    def propose(self, request: Request, max_tokens: int, min_survival: float = 0.0) -> Draft | None:
        """Copy what followed the longest match of the last tokens."""
        state = self._states.get(request.request_id)
        if state is None:
            state = self._states[request.request_id] = _RequestState()
            state.index.extend(request.prompt_token_ids)
        index = state.index
        num_missing = request.num_tokens - len(index.token_ids)
        if num_missing:
            index.extend(request.output_token_ids[-num_missing:])
        match = index.find_match()
        if match is None or max_tokens < 1:
            state.guess = []
            return None
        num_pending = request.num_pending_tokens
        state.guess = index.copy_from(match.end, num_pending + max_tokens)
        state.length = match.length
        state.agreement = classify_agreement(match.num_places, match.num_agreeing)
        state.record_class = classify_record(state.record)
        survivals: list[float] = []
        survival = 1.0
        for depth in range(num_pending + max_tokens):
            # A draft so many tokens later continues a match that is so much longer.
            survival *= self.table.confidence(state.length + depth, state.agreement, state.record_class)
            if survival < min_survival:
                break
            survivals.append(survival)
        if len(survivals) <= num_pending:
            return None
        return Draft(state.guess[: len(survivals)], survivals[num_pending:], num_pending)

    def observe(self, request: Request, num_new_tokens: int) -> None:
        """Judge the last guess by the tokens that came."""
        state = self._states.get(request.request_id)
        if state is None or not state.guess or not num_new_tokens:
            return
        new_token_ids = request.output_token_ids[-num_new_tokens:]
        for depth, (token_id, guessed) in enumerate(zip(new_token_ids, state.guess, strict=False)):
            is_right = token_id == guessed
            self.table.observe(state.length + depth, state.agreement, state.record_class, is_right)
            state.record = is_right if state.record is None else _decay(state.record, is_right)
            if not is_right:
                break
        state.guess = []

    def forget(self, request_id: str) -> None:
        """Drop the index of a request."""
        self._states.pop(request_id, None)


def _decay(record: float, is_right: bool) -> float:
    return _RECORD_DECAY * record + (1.0 - _RECORD_DECAY) * is_right
