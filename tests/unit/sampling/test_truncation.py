import numpy as np
import pytest

from deepinfer import SamplingParams
from deepinfer.sampling import find_candidates
from deepinfer.sampling.truncation import rank_top


def reference_candidates(logits, params):
    """The definition, step by step over the sorted row."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if params.top_k > 0:
        order = order[: params.top_k]
    scaled = (logits.astype(np.float64) - logits.max()) / params.temperature
    weights = np.exp(scaled)
    weights /= sum(weights[i] for i in order)
    if params.top_p < 1.0:
        kept, cumulative = [], 0.0
        for i in order:
            if kept and cumulative >= params.top_p:
                break
            kept.append(i)
            cumulative += weights[i]
        order = kept
    if params.min_p > 0.0:
        order = [i for i in order if weights[i] >= params.min_p * weights.max() * (1 - 1e-6)]
    return set(order)


@pytest.mark.parametrize("top_k", [-1, 0, 1, 2, 7, 50, 1000])
@pytest.mark.parametrize("top_p", [1.0, 0.999, 0.9, 0.5, 0.01, 1e-9])
@pytest.mark.parametrize("min_p", [0.0, 0.05, 1.0])
def test_against_the_definition(top_k, top_p, min_p):
    rng = np.random.default_rng(0)
    for spread, temperature in ((0.01, 1.0), (3.0, 1.0), (3.0, 0.1), (20.0, 2.0)):
        logits = (rng.standard_normal(301) * spread).astype(np.float32)
        params = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
        candidates = find_candidates(logits, params)
        found = set(range(301)) if candidates is None else set(candidates.tolist())
        assert found == reference_candidates(logits, params)


def test_ties_go_to_the_lower_id():
    logits = np.array([1.0, 2.0, 2.0, 2.0, 0.0], np.float32)
    assert rank_top(logits, 2).tolist() == [1, 2]
    assert rank_top(np.zeros(10, np.float32), 3).tolist() == [0, 1, 2]
    assert rank_top(np.zeros(10_000, np.float32), 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [1, 2, 100, 20_000])
@pytest.mark.parametrize("spread", [0.0, 0.1, 4.0, 100.0])
def test_rank_top_is_a_sort(size, spread):
    logits = (np.random.default_rng(1).standard_normal(size) * spread).astype(np.float32)
    expected = np.lexsort((np.arange(size), -logits))
    for count in {1, 2, 20, size // 2, size}:
        if 1 <= count <= size:
            assert rank_top(logits, count).tolist() == expected[:count].tolist()


def test_at_least_one_token_stays():
    logits = np.array([0.0, -1.0], np.float32)
    assert find_candidates(logits, SamplingParams(top_p=1e-300)).tolist() == [0]


def test_forbidden_tokens_never_become_candidates():
    logits = np.full(50, -np.inf, np.float32)
    logits[[3, 4]] = 1.0
    for params in (SamplingParams(top_k=2), SamplingParams(top_p=0.99), SamplingParams(min_p=0.5)):
        assert set(find_candidates(logits, params).tolist()) <= {3, 4}
