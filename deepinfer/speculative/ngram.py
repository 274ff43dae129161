"""Drafts copied from where the last tokens occurred before: prompt lookup. Quotes, edits and loops are full of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepinfer.request import Request
from deepinfer.speculative.confidence import AcceptanceTable, MatchKind, classify_agreement, classify_record
from deepinfer.speculative.proposer import Draft
from deepinfer.speculative.token_index import TokenIndex

_RECORD_DECAY = 0.85
_NO_MATCH = MatchKind(length=0, agreement=0, record=0)


@dataclass(slots=True)
class _RequestState:
    """One request: its index, the share of its drafts that were right lately, and the guess not yet judged."""

    index: TokenIndex = field(default_factory=TokenIndex)
    record: float | None = None
    guess: list[int] = field(default_factory=list)
    first_kind: MatchKind = _NO_MATCH


class NgramProposer:
    """Guesses by copying, and keeps count of how it did. Every guess is judged by the tokens that come, verified or
    not, so that confidences stay right where nothing is worth verifying."""

    def __init__(self) -> None:
        self.table = AcceptanceTable()
        self._states: dict[str, _RequestState] = {}

    def propose(self, request: Request, max_tokens: int) -> Draft | None:
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
        agreement = classify_agreement(match.num_places, match.num_agreeing)
        num_pending = request.num_pending_tokens
        state.guess = index.copy_from(match.end, num_pending + max_tokens)
        state.first_kind = MatchKind(match.length, agreement, classify_record(state.record))
        kinds = (_kind_at(state.first_kind, depth) for depth in range(len(state.guess)))
        return Draft(list(state.guess), [self.table.confidence(kind) for kind in kinds], num_pending)

    def observe(self, request: Request, num_new_tokens: int) -> None:
        """Judge the last guess by the tokens that came."""
        state = self._states.get(request.request_id)
        if state is None or not state.guess or not num_new_tokens:
            return
        new_token_ids = request.output_token_ids[-num_new_tokens:]
        for depth, (token_id, guessed) in enumerate(zip(new_token_ids, state.guess, strict=False)):
            is_right = token_id == guessed
            self.table.observe(_kind_at(state.first_kind, depth), is_right)
            state.record = is_right if state.record is None else _decay(state.record, is_right)
            if not is_right:
                break
        state.guess = []

    def forget(self, request_id: str) -> None:
        """Drop the index of a request."""
        self._states.pop(request_id, None)


def _kind_at(first: MatchKind, depth: int) -> MatchKind:
    """A draft `depth` tokens later continues a match that is so much longer."""
    return MatchKind(first.length + depth, first.agreement, first.record) if depth else first


def _decay(record: float, is_right: bool) -> float:
    return _RECORD_DECAY * record + (1.0 - _RECORD_DECAY) * is_right
