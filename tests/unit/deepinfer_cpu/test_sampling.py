"""The native choice of a token equals that of the sampler on the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepinfer.sampling import Sampler, SamplingRow
from deepinfer.sampling.random import compute_key
from deepinfer.sampling_params import SamplingParams

deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

FORMS = ("normal", "flat", "peaked", "tied", "mostly forbidden")


def make_logits(form, size, seed):
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 3, size).astype(np.float32)
    if form == "flat":
        logits = np.full(size, generator.normal(), np.float32)
    elif form == "peaked":
        logits[generator.integers(size)] += 30
    elif form == "tied":
        logits = np.round(logits)
    elif form == "mostly forbidden":
        logits[generator.random(size) < 0.9] = -np.inf
        logits[generator.integers(size)] = 1.5
    return logits


def choose_on_host(logits, params, position):
    row = SamplingRow(params, list(range(position)), 0)
    sampled = Sampler(logits.size).sample(logits[None], [row])
    return sampled.token_ids[0], sampled.logprobs[0]


def choose_natively(logits, params, position):
    key = 0 if params.is_greedy else compute_key(params.seed, position)
    limits = (max(params.top_k, 0), params.top_p, params.min_p)
    return deepinfer_cpu.sample_row(logits, (0, params.temperature, *limits, key, None, params.logprobs))


@settings(max_examples=300, deadline=None)
@given(
    form=st.sampled_from(FORMS),
    size=st.sampled_from([1, 2, 7, 8, 9, 127, 129, 1000, 5000]),
    seed=st.integers(0, 2**32),
    position=st.integers(0, 5000),
    temperature=st.sampled_from([0.0, 0.01, 0.3, 0.7, 1.0, 1.9]),
    top_k=st.sampled_from([-1, 1, 2, 40, 10_000]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    logprobs=st.sampled_from([None, 0, 1, 20]),
)
def test_tokens_and_logprobs(form, size, seed, position, temperature, top_k, top_p, min_p, logprobs):
    logits = make_logits(form, size, seed)
    params = SamplingParams(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed, logprobs=logprobs
    )
    token_id, logprob = choose_on_host(logits, params, position)
    native = choose_natively(logits, params, position)
    assert native is not None
    assert native[0] == token_id
    if logprob is None:
        assert native[1] is None
        return
    value, rank, top = native[1]
    assert rank == logprob.rank
    assert value == pytest.approx(logprob.logprob, abs=2e-6, rel=2e-6)
    assert [token for token, _ in top] == [token for token, _ in logprob.top]
    assert [each for _, each in top] == pytest.approx([each for _, each in logprob.top], abs=2e-6, rel=2e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("index", [0, 5, 8])
def test_logits_that_are_not_finite_choose_nothing(bad, index):
    logits = np.zeros(9, np.float32)
    logits[index] = bad
    assert deepinfer_cpu.sample_row(logits, (0, 1.0, 0, 1.0, 0.0, 7, None, None)) is None
    assert deepinfer_cpu.sample_row(np.full(9, -np.inf, np.float32), (0, 0.0, 0, 1.0, 0.0, 0, None, None)) is None


def test_a_known_token_is_kept():
    logits = np.array([0.0, 3.0, -np.inf, 1.0], np.float32)
    token, (logprob, rank, top) = deepinfer_cpu.sample_row(logits, (0, 0.0, 0, 1.0, 0.0, 0, 2, 4))
    assert (token, logprob, rank) == (2, -9999.0, 4)
    assert [each for each, _ in top] == [1, 3, 0]


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        ((1, 0.0, 0, 1.0, 0.0, 0, None, None), "samples"),
        ((0, 0.0, 0, 1.0, 0.0, 0, 9, None), "samples"),
        ((0, -1.0, 0, 1.0, 0.0, 0, None, None), "temperature"),
        ((0, float("nan"), 0, 1.0, 0.0, 0, None, None), "temperature"),
        ((0, 1.0, 0, 0.0, 0.0, 0, None, None), "top_p"),
        ((0, 1.0, 0, 1.0, 2.0, 0, None, None), "min_p"),
    ],
)
def test_impossible_samples_are_refused_by_name(sample, field):
    with pytest.raises(deepinfer_cpu.CpuError, match=field):
        deepinfer_cpu.sample_row(np.zeros(9, np.float32), sample)
