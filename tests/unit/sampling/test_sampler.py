import numpy as np
import pytest

from deepinfer import SamplingParams
from deepinfer.sampling import Sampler, SamplingRow
from deepinfer.sampling.random import compute_key, compute_noise, make_counters

VOCAB = 64


def make_logits(rows, spread=2.0, vocab=VOCAB, seed=0):
    return (np.random.default_rng(seed).standard_normal((rows, vocab)) * spread).astype(np.float32)


def make_row(position=3, prompt=1, **params):
    options = {"seed": 0, **params}
    return SamplingRow(SamplingParams(**options), list(range(position)), prompt)


def draw_many(sampler, logits, count, **params):
    """Draws of one distribution at `count` different seeds."""
    rows = [make_row(**{**params, "seed": seed}) for seed in range(count)]
    return np.array(sampler.sample(np.tile(logits, (count, 1)), rows).token_ids)


def chi_square(draws, probabilities):
    counts = np.bincount(draws, minlength=probabilities.size)
    is_common = probabilities * draws.size >= 5
    expected = np.append(probabilities[is_common], probabilities[~is_common].sum()) * draws.size
    observed = np.append(counts[is_common], counts[~is_common].sum())
    used = expected > 0
    return float(((observed - expected)[used] ** 2 / expected[used]).sum()), int(used.sum()) - 1


def softmax(logits):
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("varied", ["seed", "position"])
def test_draws_follow_the_softmax(temperature, varied):
    logits = make_logits(1)[0]
    sampler = Sampler(VOCAB)
    if varied == "seed":
        draws = draw_many(sampler, logits, 2000, temperature=temperature)
    else:
        noise = [compute_noise(make_counters(VOCAB), compute_key(11, position)) for position in range(2000)]
        draws = (logits.astype(np.float64) / temperature + np.array(noise)).argmax(axis=1)
    statistic, degrees = chi_square(draws, softmax(logits / np.float32(temperature)))
    # Mean + 5 standard deviations of a chi-square variable.
    assert statistic < degrees + 5 * np.sqrt(2 * degrees)


def test_draws_follow_the_renormalised_distribution_after_truncation():
    logits = make_logits(1)[0]
    draws = draw_many(Sampler(VOCAB), logits, 1500, top_k=10, top_p=0.9)
    probabilities = softmax(logits)
    order = np.argsort(-probabilities)[:10]
    within = probabilities[order] / probabilities[order].sum()
    kept = order[np.cumsum(within) - within < 0.9]
    expected = np.zeros(VOCAB)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    assert set(draws.tolist()) <= set(kept.tolist())
    statistic, degrees = chi_square(draws, expected)
    assert statistic < degrees + 5 * np.sqrt(2 * degrees)


def test_rare_tokens_are_drawn_as_often_as_they_should():
    # Far below the threshold of the shortcut, but many: they win one draw in seven.
    vocab = 500_000
    logits = np.full(vocab, -15.0, np.float32)
    logits[0] = 0.0
    draws = draw_many(Sampler(vocab), logits, 60)
    probability = (vocab - 1) * np.exp(-15) / (1 + (vocab - 1) * np.exp(-15))
    expected = probability * 60
    assert 0 < (draws != 0).sum() < expected + 5 * np.sqrt(expected)


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 1.0, 5.0, 1e3])
def test_the_shortcut_over_the_whole_row_chooses_what_the_definition_says(temperature):
    sampler = Sampler(5000)
    counters = make_counters(5000)
    for index, logits in enumerate(make_logits(30, spread=3.0, vocab=5000)):
        scaled = (logits.astype(np.float64) - logits.max()) / temperature
        expected = (scaled + compute_noise(counters, compute_key(9, index + 1))).argmax()
        row = make_row(position=index + 1, seed=9, temperature=temperature)
        assert sampler.sample(logits[None], [row]).token_ids == [expected]


def test_a_row_does_not_depend_on_its_batch():
    logits = make_logits(8)
    kinds = [
        {},
        {"temperature": 0.0},
        {"top_p": 0.8},
        {"top_k": 5},
        {"min_p": 0.1},
        {"frequency_penalty": 1.0},
        {"logprobs": 3},
        {"logit_bias": {3: 5.0}},
    ]
    sampler = Sampler(VOCAB)

    def rows():
        return [make_row(seed=number, position=4 + number, **kind) for number, kind in enumerate(kinds)]

    together = sampler.sample(logits, rows())
    for index in range(8):
        alone = sampler.sample(logits[index : index + 1], [rows()[index]])
        assert alone.token_ids[0] == together.token_ids[index]
        assert alone.logprobs[0] == together.logprobs[index]
    order = np.random.default_rng(3).permutation(8)
    permuted = sampler.sample(logits[order], [rows()[index] for index in order])
    assert permuted.token_ids == [together.token_ids[index] for index in order]


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_extreme_seeds(seed):
    logits = make_logits(50)
    sampler = Sampler(VOCAB)
    first = sampler.sample(logits, [make_row(seed=seed, position=1 + i) for i in range(50)]).token_ids
    second = sampler.sample(logits, [make_row(seed=seed, position=1 + i) for i in range(50)]).token_ids
    assert first == second
    assert len(set(first)) > 10


def test_forbidden_tokens_are_never_drawn():
    logits = np.zeros(VOCAB, np.float32)
    logits[:60] = -np.inf
    draws = draw_many(Sampler(VOCAB), logits, 300, temperature=1e30)
    assert set(draws.tolist()) == {60, 61, 62, 63}


def test_greedy_is_argmax_and_the_lower_id_on_ties():
    logits = np.zeros((3, VOCAB), np.float32)
    logits[1, [5, 9]] = 2.0
    logits[2, 63] = 1e-30
    rows = [make_row(temperature=0.0) for _ in range(3)]
    assert Sampler(VOCAB).sample(logits, rows).token_ids == [0, 5, 63]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("params", [{"temperature": 0.0}, {}, {"top_p": 0.5, "logprobs": 2}])
def test_a_bad_row_fails_alone(bad, params):
    logits = make_logits(3)
    logits[1, 40] = bad
    result = Sampler(VOCAB).sample(logits, [make_row(**params) for _ in range(3)])
    good = Sampler(VOCAB).sample(logits[[0, 2]], [make_row(**params) for _ in range(2)])
    assert result.token_ids == [good.token_ids[0], -1, good.token_ids[1]]
    assert list(result.errors) == [1]
    assert "not finite" in result.errors[1]
    assert result.logprobs[1] is None


def test_forbidding_every_token_is_an_error_of_the_row():
    row = make_row(bad_words_token_ids=tuple((i,) for i in range(VOCAB)))
    result = Sampler(VOCAB).sample(make_logits(1), [row])
    assert "forbid every token" in result.errors[0]


def test_no_rows():
    result = Sampler(VOCAB).sample(np.empty((0, VOCAB), np.float32), [])
    assert (result.token_ids, result.logprobs, result.errors) == ([], [], {})
