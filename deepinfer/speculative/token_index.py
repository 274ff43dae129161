"""Finds where the last tokens of a sequence occurred before in it, as a compressor finds its matches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MIN_MATCH = 2
MAX_MATCH = 32
_MAX_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier place that ends with the same tokens as the sequence.

    Attributes:
        end: index of the token that followed there.
        length: equal tokens before it, from MIN_MATCH to MAX_MATCH.
        num_places: places looked at, the latest ones.
        num_agreeing: those of them that were followed by the same token as this one.
    """

    end: int
    length: int
    num_places: int
    num_agreeing: int


class TokenIndex:
    """All places of each pair of tokens, linked from the latest to the first."""

    __slots__ = ("_latest", "_previous", "token_ids")

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self._latest: dict[int, int] = {}  # pair -> index of its second token
        self._previous: list[int] = []  # index -> the one before it with the same pair, or -1

    def extend(self, token_ids: Iterable[int]) -> None:
        """Append tokens."""
        latest, previous = self._latest, self._previous
        last = self.token_ids[-1] if self.token_ids else -1
        for index, token_id in enumerate(token_ids, len(self.token_ids)):
            pair = last << 32 | token_id
            previous.append(latest.get(pair, -1))
            latest[pair] = index
            self.token_ids.append(token_id)
            last = token_id

    def find_match(self) -> Match | None:
        """The longest match among the latest places, the latest of equal ones; None if the last pair is new."""
        token_ids, previous = self.token_ids, self._previous
        if len(token_ids) <= MIN_MATCH:
            return None
        last = len(token_ids) - 1
        place = previous[last]
        best_end = best_length = 0
        following: list[int] = []
        while place >= 0 and len(following) < _MAX_CANDIDATES:
            following.append(token_ids[place + 1])
            if (
                best_length < MAX_MATCH
                and best_length <= place
                and (token_ids[place - best_length] == token_ids[last - best_length])
            ):  # only such a place can match longer
                length = MIN_MATCH
                limit = min(MAX_MATCH, place + 1)
                while length < limit and token_ids[place - length] == token_ids[last - length]:
                    length += 1
                if length > best_length:
                    best_end, best_length = place + 1, length
            place = previous[place]
        if not following:
            return None
        return Match(best_end, best_length, len(following), following.count(token_ids[best_end]))

    def copy_from(self, start: int, count: int) -> list[int]:
        """`count` tokens from an index on; where the sequence ends, its end repeats."""
        copied = self.token_ids[start : start + count]
        period = len(copied)
        while len(copied) < count:
            copied.append(copied[-period])
        return copied
