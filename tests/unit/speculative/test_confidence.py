"""Confidences come to what was counted, and never leave (0, 1)."""

import random

import pytest

from deepinfer.speculative import AcceptanceTable
from deepinfer.speculative.confidence import classify_agreement, classify_length, classify_record


def test_before_anything_was_counted_longer_matches_are_trusted_more():
    table = AcceptanceTable()
    values = [table.confidence(length, 0, 0) for length in range(2, 50)]
    assert values == sorted(values)
    assert 0.3 < values[0] < 0.6
    assert 0.9 < values[-1] < 1.0


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_learns_the_rate_of_a_kind(rate):
    table, rng = AcceptanceTable(), random.Random(0)
    kind = (3, 2, 1)
    for _ in range(3000):
        table.observe(*kind, rng.random() < rate)
    assert table.confidence(*kind) == pytest.approx(rate, abs=0.05)
    assert 0.0 < table.confidence(*kind) < 1.0


def test_a_kind_without_counts_leans_on_its_length():
    table = AcceptanceTable()
    for _ in range(200):
        table.observe(4, 0, 0, False)
    assert table.confidence(4, 1, 3) < 0.1
    assert table.confidence(5, 1, 3) > 0.4


def test_forgets_what_is_old():
    table = AcceptanceTable()
    kind = (2, 0, 0)
    for is_right in [True] * 20_000 + [False] * 3000:
        table.observe(*kind, is_right)
    assert table.confidence(*kind) < 0.2


def test_classes():
    assert [classify_length(length) for length in (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 22, 23, 31, 32, 99)] == [
        0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10,
    ]  # fmt: skip
    assert [classify_agreement(*pair) for pair in ((1, 1), (3, 3), (3, 2))] == [0, 1, 2]
    assert [classify_record(ratio) for ratio in (None, 0.0, 0.4, 0.8, 1.0)] == [0, 1, 2, 3, 3]
