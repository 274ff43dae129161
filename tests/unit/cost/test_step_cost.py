import math

import pytest

from deepinfer.cost import StepCost, StepLoad

COST = StepCost(2e-3, 1.5e-4, 2e-8, 3e-4, 1e-7)


def test_predict_adds_up_its_terms():
    load = StepLoad(num_decode_rows=3, num_decode_pairs=600)
    load.add_prefill(100, 50)
    load.add_prefill(10, 0)
    expected = 2e-3 + 110 * 1.5e-4 + (100 * 100 + 10 * 5) * 2e-8 + 3 * 3e-4 + 600 * 1e-7
    assert COST.predict(load) == pytest.approx(expected, rel=1e-12)
    assert sum(load.terms()) == pytest.approx(1 + 110 + 10_050 + 3 + 600)


def test_two_chunks_cost_what_one_costs():
    whole = COST.predict_prefill(300, 100)
    assert COST.predict_prefill(100, 100) + COST.predict_prefill(200, 200) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("num_cached", [0, 1, 1000, 100_000])
@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 0.1, 10.0])
def test_largest_chunk_takes_exactly_the_seconds(num_cached, seconds):
    size = COST.largest_chunk(seconds, num_cached)
    pairs = size * (num_cached + 0.5 * size)
    assert 1.5e-4 * size + 2e-8 * pairs == pytest.approx(seconds, rel=1e-9)


def test_largest_chunk_falls_with_the_context():
    sizes = [COST.largest_chunk(0.05, num_cached) for num_cached in (0, 1000, 10_000, 100_000)]
    assert sizes == sorted(sizes, reverse=True)


def test_largest_chunk_at_the_edges():
    assert COST.largest_chunk(0.0, 5) == 0.0
    assert COST.largest_chunk(-1.0, 5) == 0.0
    assert StepCost(1e-3, 0.0, 0.0, 0.0, 0.0).largest_chunk(1.0, 5) == math.inf
    assert StepCost(1e-3, 1e-4, 0.0, 0.0, 0.0).largest_chunk(1.0, 5) == pytest.approx(10_000)
    assert StepCost(1e-3, 0.0, 2e-8, 0.0, 0.0).largest_chunk(1.0, 0) == pytest.approx(10_000)
