import math

import numpy as np
import pytest

from deepinfer.sampling.random import (
    compute_key,
    compute_noise,
    find_hash_bound,
    hash_into,
    log_exact,
    make_counters,
    mix,
    noise_from_hash,
)

GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(state, count):
    """The published generator, as a stream."""
    values = []
    for _ in range(count):
        state = (state + GOLDEN) % 2**64
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        values.append(z ^ (z >> 31))
    return values


def test_mix_is_the_generator_with_published_first_values():
    # First outputs of SplitMix64 from state 0, as they stand in many test suites.
    assert splitmix64(0, 3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mix(GOLDEN) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("position", [0, 1, 4095, 2**31])
def test_hashes_are_the_stream_that_starts_at_the_key(seed, position):
    key = compute_key(seed, position)
    assert 0 <= key < 2**64
    counters = make_counters(50)
    hashes = hash_into(counters, key, np.empty_like(counters), np.empty_like(counters))
    assert hashes.tolist() == [value >> 12 for value in splitmix64(key, 50)]


def test_keys_differ_by_seed_and_by_position():
    keys = {compute_key(seed, position) for seed in (0, 1, 2**64 - 1) for position in range(100)}
    assert len(keys) == 300


def test_draws_that_a_twin_in_another_language_must_give():
    noise = compute_noise(make_counters(3), compute_key(2**64 - 1, 7))
    key = compute_key(2**64 - 1, 7)
    expected = [-math.log(-math.log(((value >> 12) + 0.5) * 2.0**-52)) for value in splitmix64(key, 3)]
    assert noise == pytest.approx(expected, rel=1e-14)


def test_noise_is_finite_at_both_ends():
    ends = noise_from_hash(np.array([0, 2**52 - 1], np.uint64))
    assert np.isfinite(ends).all()
    assert ends[0] == pytest.approx(-math.log(math.log(2.0**53)), rel=1e-12)
    assert ends[1] == pytest.approx(53 * math.log(2), rel=1e-12)


def test_noise_has_the_moments_of_a_gumbel_distribution():
    noise = compute_noise(make_counters(200_000), compute_key(5, 5))
    assert noise.mean() == pytest.approx(0.5772156649, abs=0.01)
    assert noise.var() == pytest.approx(math.pi**2 / 6, abs=0.03)


def test_log_exact_is_within_two_units_in_the_last_place():
    values = np.concatenate(
        [
            np.linspace(1e-6, 40.0, 20_001),
            1.0 - np.geomspace(2.0**-53, 0.5, 2000),
            1.0 + np.geomspace(2.0**-52, 1.0, 2000),
            np.geomspace(1e-300, 1e300, 2000),
        ]
    )
    expected = np.array([math.log(value) for value in values])
    error = np.abs(log_exact(values) - expected)
    assert (error <= 2 * np.spacing(np.abs(expected))).all()


@pytest.mark.parametrize("noise", [-50.0, -3.7, -1.0, 0.0, 1.0, 5.0, 12.0, 30.0, 36.0, 100.0])
def test_hash_bound_misses_nothing(noise):
    bound = find_hash_bound(noise)
    below = [number for number in (bound - 1, bound - 2, bound - 1000) if 0 <= number < 2**52]
    if below:
        assert (noise_from_hash(np.array(below, np.uint64)) < noise).all()
