"""How likely a copied token is the right one: counted while serving, by what is known before it is verified."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

# Assumed before anything was counted: what copied tokens do in text that repeats itself now and then.
_PRIOR_SCALE: Final = 6.0
_PRIOR_LOW, _PRIOR_HIGH = 0.3, 0.97
_PRIOR_WEIGHT = 4.0
_CELL_WEIGHT = 8.0
_MAX_COUNT = 1024.0  # beyond it old counts fade
_NUM_LENGTH_CLASSES = 11
_NUM_AGREEMENT_CLASSES = 3
_NUM_RECORD_CLASSES = 4


@dataclass(frozen=True, slots=True)
class MatchKind:
    """What the confidence of a copied token depends on.

    Attributes:
        length: equal tokens before it, drafts in between included.
        agreement: 0 if the match is the only place, 1 if all places agree on what follows, 2 if they do not.
        record: how the request's last drafts did, see `classify_record`.
    """

    length: int
    agreement: int
    record: int


class AcceptanceTable:
    """Counts of right and wrong drafts. A kind with few counts leans on all kinds of its length, those on a prior."""

    __slots__ = ("_cells", "_lengths")

    def __init__(self) -> None:
        self._lengths = [[0.0, 0.0] for _ in range(_NUM_LENGTH_CLASSES)]  # [tried, right]
        num_cells = _NUM_LENGTH_CLASSES * _NUM_AGREEMENT_CLASSES * _NUM_RECORD_CLASSES
        self._cells = [[0.0, 0.0] for _ in range(num_cells)]

    def confidence(self, kind: MatchKind) -> float:
        """Probability that a draft of this kind is right if those before it are."""
        length_class = classify_length(kind.length)
        tried, right = self._lengths[length_class]
        prior = _PRIOR_LOW + (_PRIOR_HIGH - _PRIOR_LOW) * (1.0 - math.exp((1.0 - kind.length) / _PRIOR_SCALE))
        by_length = (right + _PRIOR_WEIGHT * prior) / (tried + _PRIOR_WEIGHT)
        tried, right = self._cells[_cell(length_class, kind)]
        return (right + _CELL_WEIGHT * by_length) / (tried + _CELL_WEIGHT)

    def observe(self, kind: MatchKind, is_right: bool) -> None:
        """Count a draft whose predecessors were all right."""
        length_class = classify_length(kind.length)
        for counts in (self._lengths[length_class], self._cells[_cell(length_class, kind)]):
            counts[0] += 1.0
            counts[1] += is_right
            if counts[0] > _MAX_COUNT:
                counts[0] *= 0.5
                counts[1] *= 0.5


def classify_length(length: int) -> int:
    """2, 3, 4, 5 and 6 equal tokens each for itself, then wider classes: 7-8, 9-11, 12-15, 16-22, 23-31, 32 and on."""
    if length <= 6:
        return max(0, length - 2)
    return min(_NUM_LENGTH_CLASSES - 1, int(2.0 * math.log2(length / 8.0) + 1e-9) + 6) if length >= 9 else 5


def classify_agreement(num_places: int, num_agreeing: int) -> int:
    """See `MatchKind.agreement`."""
    if num_places == 1:
        return 0
    return 1 if num_agreeing == num_places else 2


def classify_record(ratio: float | None) -> int:
    """0 without a record, else 1 to 3 by the share of drafts that were right lately."""
    if ratio is None:
        return 0
    return 1 if ratio < 0.4 else 2 if ratio < 0.8 else 3


def _cell(length_class: int, kind: MatchKind) -> int:
    return (length_class * _NUM_AGREEMENT_CLASSES + kind.agreement) * _NUM_RECORD_CLASSES + kind.record
