"""How likely a copied token is the right one: counted while serving, by what is known before it is verified."""

from __future__ import annotations

import math
from typing import Final

# Assumed before anything was counted: what copied tokens do in text that repeats itself now and then.
_PRIOR_SCALE: Final = 6.0
_PRIOR_LOW, _PRIOR_HIGH = 0.3, 0.97
_PRIOR_WEIGHT = 4.0
_CELL_WEIGHT = 8.0
_MAX_COUNT = 1024.0  # beyond it old counts fade
_MAX_LENGTH = 64  # longer matches are trusted as this one
_NUM_LENGTH_CLASSES = 11
_NUM_AGREEMENT_CLASSES = 3
_NUM_RECORD_CLASSES = 4


class AcceptanceTable:
    """Counts of right and wrong drafts by what is known before: the equal tokens before the draft (drafts in between
    included), whether all places of the match agree (see `classify_agreement`), and how the request's last drafts did
    (see `classify_record`). A kind with few counts leans on all kinds of its length, those on a prior."""

    __slots__ = ("_cells", "_lengths")

    def __init__(self) -> None:
        self._lengths = [[0.0, 0.0] for _ in range(_NUM_LENGTH_CLASSES)]  # [tried, right]
        num_cells = _NUM_LENGTH_CLASSES * _NUM_AGREEMENT_CLASSES * _NUM_RECORD_CLASSES
        self._cells = [[0.0, 0.0] for _ in range(num_cells)]

    def confidence(self, length: int, agreement: int, record: int) -> float:
        """Probability that a draft of this kind is right if those before it are."""
        length = min(length, _MAX_LENGTH)
        length_class = _LENGTH_CLASSES[length]
        tried, right = self._lengths[length_class]
        by_length = (right + _PRIOR_WEIGHT * _PRIORS[length]) / (tried + _PRIOR_WEIGHT)
        tried, right = self._cells[_cell(length_class, agreement, record)]
        return (right + _CELL_WEIGHT * by_length) / (tried + _CELL_WEIGHT)

    def observe(self, length: int, agreement: int, record: int, is_right: bool) -> None:
        """Count a draft whose predecessors were all right."""
        length_class = _LENGTH_CLASSES[min(length, _MAX_LENGTH)]
        for counts in (self._lengths[length_class], self._cells[_cell(length_class, agreement, record)]):
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
    """0 if the match is the only place, 1 if all places agree on what follows, 2 if they do not."""
    if num_places == 1:
        return 0
    return 1 if num_agreeing == num_places else 2


def classify_record(ratio: float | None) -> int:
    """0 without a record, else 1 to 3 by the share of drafts that were right lately."""
    if ratio is None:
        return 0
    return 1 if ratio < 0.4 else 2 if ratio < 0.8 else 3


def _cell(length_class: int, agreement: int, record: int) -> int:
    return (length_class * _NUM_AGREEMENT_CLASSES + agreement) * _NUM_RECORD_CLASSES + record


_LENGTH_CLASSES: Final = [classify_length(length) for length in range(_MAX_LENGTH + 1)]
_PRIORS: Final = [
    _PRIOR_LOW + (_PRIOR_HIGH - _PRIOR_LOW) * (1.0 - math.exp((1.0 - length) / _PRIOR_SCALE))
    for length in range(_MAX_LENGTH + 1)
]
