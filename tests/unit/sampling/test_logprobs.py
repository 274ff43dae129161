import math

import numpy as np
import pytest

from deepinfer import SamplingParams
from deepinfer.sampling import Sampler, SamplingRow, compute_prompt_logprobs, compute_token_logprob


def reference(logits):
    values = [float(value) for value in logits]
    best = max(values)
    normaliser = best + math.log(math.fsum(math.exp(value - best) for value in values))
    return [value - normaliser for value in values]


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("num_top", [0, 1, 5, 100])
def test_against_the_definition(spread, num_top):
    logits = (np.random.default_rng(0).standard_normal(100) * spread).astype(np.float32)
    expected = reference(logits)
    order = sorted(range(100), key=lambda i: (-logits[i], i))
    for token_id in (0, 50, 99, order[0]):
        entry = compute_token_logprob(logits, token_id, num_top)
        assert entry.token_id == token_id
        assert entry.logprob == pytest.approx(expected[token_id], abs=1e-5)
        assert entry.rank == order.index(token_id) + 1
        assert [top_id for top_id, _ in entry.top] == order[:num_top]
        assert [value for _, value in entry.top] == pytest.approx([expected[i] for i in order[:num_top]], abs=1e-5)


def test_more_top_tokens_than_the_vocabulary_holds():
    entry = compute_token_logprob(np.array([0.0, 1.0], np.float32), 0, 20)
    assert [top_id for top_id, _ in entry.top] == [1, 0]


def test_probabilities_sum_to_one():
    logits = (np.random.default_rng(0).standard_normal(500) * 4).astype(np.float32)
    entry = compute_token_logprob(logits, 0, 500)
    assert math.fsum(math.exp(value) for _, value in entry.top) == pytest.approx(1.0, abs=1e-5)


def test_prompt_entries_belong_to_the_next_token():
    logits = np.eye(4, 6, dtype=np.float32) * 5
    entries = compute_prompt_logprobs(logits, [0, 1, 5, 3], 1)
    assert [entry.rank for entry in entries] == [1, 1, 6, 1]
    assert [entry.token_id for entry in entries] == [0, 1, 5, 3]


def test_sampled_entries_show_the_raw_logits():
    logits = (np.random.default_rng(0).standard_normal((1, 50))).astype(np.float32)
    row = SamplingRow(SamplingParams(seed=1, temperature=0.1, top_k=3, logit_bias={7: 50.0}, logprobs=2), [1], 1)
    result = Sampler(50).sample(logits, [row])
    assert result.token_ids == [7]
    assert result.logprobs[0] == compute_token_logprob(logits[0], 7, 2)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_processed_entries_show_what_is_drawn_from(temperature):
    logits = (np.random.default_rng(0).standard_normal((1, 50))).astype(np.float32)
    params = SamplingParams(
        seed=1, temperature=temperature, top_k=3, logit_bias={7: 50.0}, logprobs=5, logprobs_mode="processed"
    )
    entry = Sampler(50).sample(logits, [SamplingRow(params, [1], 1)]).logprobs[0]
    biased = logits[0].copy()
    biased[7] += 50.0
    scaled = [float(value) / (temperature or 1.0) for value in biased]
    order = sorted(range(50), key=lambda i: (-scaled[i], i))
    kept = order if temperature == 0.0 else order[:3]
    normaliser = math.log(math.fsum(math.exp(scaled[i] - scaled[7]) for i in kept)) + scaled[7]
    assert [top_id for top_id, _ in entry.top] == kept[:5]
    assert [value for _, value in entry.top] == pytest.approx([scaled[i] - normaliser for i in kept[:5]], abs=1e-4)
    assert entry.logprob == pytest.approx(scaled[entry.token_id] - normaliser, abs=1e-4)


def test_a_forced_token_that_was_cut_has_the_lowest_value():
    logits = np.linspace(0, 5, 50, dtype=np.float32)[None]
    params = SamplingParams(seed=1, top_k=1, logprobs=0, logprobs_mode="processed", golden_token_ids=(3,))
    entry = Sampler(50).sample(logits, [SamplingRow(params, [1], 1)]).logprobs[0]
    assert (entry.token_id, entry.logprob) == (3, -9999.0)
