"""How many drafts are verified: the best total by brute force, shared by rank, prefixes of each request's drafts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepinfer.speculative import RowCurve, choose_num_drafts, share_drafts
from deepinfer.speculative.verify_length import compute_min_survival


def falling(values):
    return list(itertools.accumulate(values, lambda a, b: a * b))


rows = st.lists(st.lists(st.floats(0.03, 1.0), max_size=4).map(falling), min_size=1, max_size=4)
curves = st.lists(st.floats(0.1, 3.0), min_size=2, max_size=20).map(lambda steps: list(itertools.accumulate(steps)))


@given(rows, curves, st.floats(0.0, 5.0), st.integers(0, 16))
def test_total_is_the_best_by_brute_force(survivals, curve, extra, max_drafts):
    chosen = choose_num_drafts(survivals, curve, extra, max_drafts)
    ranked = sorted((value for values in survivals for value in values if value >= 0.02), reverse=True)[:max_drafts]

    def rate(count):
        num_rows = len(survivals) + count
        seconds = curve[min(num_rows, len(curve) - 1)] + extra
        return (len(survivals) + sum(ranked[:count])) / seconds

    assert 0 <= chosen <= len(ranked)
    assert rate(chosen) == pytest.approx(max(rate(count) for count in range(len(ranked) + 1)))


@given(rows, st.integers(0, 20))
def test_shares_are_prefixes_of_the_most_likely(survivals, total):
    counts = share_drafts(survivals, total)
    available = [sum(value >= 0.02 for value in values) for values in survivals]
    assert sum(counts) == min(total, sum(available))
    assert all(0 <= count <= most for count, most in zip(counts, available, strict=True))
    taken = [value for values, count in zip(survivals, counts, strict=True) for value in values[:count]]
    left = [value for values, count in zip(survivals, counts, strict=True) for value in values[count:]]
    assert not taken or not left or min(taken) >= max(left)


@given(rows, st.integers(0, 20), st.randoms())
def test_order_of_requests_matters_to_ties_alone(survivals, total, rng):
    values = [value for each in survivals for value in each]
    if len(set(values)) < len(values):
        return
    order = list(range(len(survivals)))
    rng.shuffle(order)
    shuffled = share_drafts([survivals[index] for index in order], total)
    assert [shuffled[order.index(index)] for index in range(len(order))] == share_drafts(survivals, total)


def test_ties_go_to_the_earlier_request():
    assert share_drafts([[0.5, 0.5], [0.5]], 2) == [2, 0]


def test_an_unknown_curve_verifies_all():
    assert choose_num_drafts([[0.9, 0.8], [0.1], []], [], 0.0, 10) == 3
    assert choose_num_drafts([[0.9, 0.8], [0.1], []], [], 0.0, 2) == 2


def test_a_flat_curve_verifies_all_and_a_steep_one_nothing():
    survivals = [[0.9, 0.5, 0.1]] * 3
    assert choose_num_drafts(survivals, [1.0] * 20, 0.0, 99) == 9
    assert choose_num_drafts(survivals, [float(rows) for rows in range(20)], 0.0, 99) == 0


def test_a_curve_of_zeros_is_no_error():
    assert choose_num_drafts([[0.9, 0.8], []], [0.0] * 9, 0.0, 9) == 2


def test_looks_over_a_step_of_the_curve():
    curve = [0.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    assert choose_num_drafts([[0.95, 0.9, 0.85, 0.8, 0.75]], curve, 0.0, 99) == 5
    assert choose_num_drafts([[0.95, 0.9, 0.85]], curve, 0.0, 1) == 0


@given(rows, curves, st.floats(0.0, 5.0))
def test_what_survives_too_little_is_never_worth_it(survivals, steps, extra):
    """Without the drafts below the bound the best rate is the same."""
    num_requests = len(survivals)
    curve = RowCurve()
    curve._curve, curve._num_until_refresh = list(itertools.accumulate([1.0] * 30 + steps)), 10**6
    seconds = curve._curve
    bound = compute_min_survival(curve.least_row_seconds(num_requests), seconds[num_requests] + extra, num_requests)
    pruned = [[value for value in values if value >= bound] for values in survivals]

    def best_rate(values):
        count = choose_num_drafts(values, seconds, extra, 99)
        taken = sorted((value for each in values for value in each), reverse=True)[:count]
        return (num_requests + sum(taken)) / (seconds[num_requests + count] + extra)

    assert best_rate(pruned) == pytest.approx(best_rate(survivals))
