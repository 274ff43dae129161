"""sample_gumbel: the draws of the host's definition in numpy, from the right distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepinfer.sampling.random import compute_key, compute_noise, make_counters
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.sample_gumbel import sample_gumbel, sample_gumbel_ref
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_identical

INF, NAN = float("inf"), float("nan")
SEEDS = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 123456789]


def as_signed(seeds):
    return torch.from_numpy(np.array(seeds, dtype=np.uint64).view(np.int64).copy())


def draw_on_host(row, temperature, seed, position):
    """The definition in deepinfer.sampling.random, whose numpy arithmetic is the project's reference."""
    row = row.astype(np.float64)
    if temperature == 0:
        return int(row.argmax())
    scores = (row - row.max()) / temperature + compute_noise(make_counters(row.size), compute_key(seed, position))
    return int(scores.argmax())


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("vocab_size", [1, 2, 77, 2050])
def test_kernel_and_reference_draw_as_the_host(vocab_size, temperature):
    logits = make_normal(len(SEEDS), vocab_size, dtype=torch.float32, seed=1, scale=2.0)
    positions = torch.tensor([0, 1, 2, 77, 8191, 2**40])
    expected = [
        draw_on_host(row, temperature, seed, position)
        for row, seed, position in zip(logits.numpy(), SEEDS, positions.tolist(), strict=True)
    ]
    temperatures = torch.full((len(SEEDS),), temperature, dtype=torch.float64)
    for function in (sample_gumbel_ref, sample_gumbel):
        got = function(logits, temperatures, as_signed(SEEDS), positions)
        assert_identical(got, torch.tensor(expected))


def test_scores_agree_to_the_bit_with_the_host():
    """With equal logits the order of the noise decides: compare the winner among ever fewer tokens."""
    vocab_size = 300
    noise = compute_noise(make_counters(vocab_size), compute_key(7, 5))
    logits = torch.zeros(40, vocab_size)
    for rank, token_id in enumerate(np.argsort(-noise)[:39]):
        logits[rank + 1 :, token_id] = -INF
    arguments = (torch.ones(40, dtype=torch.float64), torch.full((40,), 7), torch.full((40,), 5))
    expected = torch.from_numpy(np.argsort(-noise)[:40].copy())
    assert_identical(sample_gumbel(logits, *arguments), expected)
    assert_identical(sample_gumbel_ref(logits, *arguments), expected)


def test_frequencies_follow_the_softmax():
    """Chi-square of 20,000 draws over 8 tokens; the bound is the 99.99% quantile for 7 degrees of freedom."""
    num_draws = 20_000
    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0, -3.0]).expand(num_draws, 8)
    temperature = torch.full((num_draws,), 0.8, dtype=torch.float64)
    ids = sample_gumbel_ref(logits, temperature, torch.full((num_draws,), 42), torch.arange(num_draws))
    expected = torch.softmax(logits[0].double() / 0.8, dim=0) * num_draws
    chi_square = ((torch.bincount(ids, minlength=8) - expected) ** 2 / expected).sum().item()
    assert chi_square < 29.9


def test_a_row_does_not_depend_on_the_others_or_on_strides():
    logits = make_normal(6, 77, dtype=torch.float32, seed=1)
    arguments = (torch.ones(6, dtype=torch.float64), as_signed(SEEDS), torch.arange(6))
    whole = sample_gumbel(logits, *arguments)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    shuffled = sample_gumbel(make_strided(logits[order]), *(a[order] for a in arguments))
    assert_identical(shuffled, whole[order])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_without_a_choice(temperature):
    logits = torch.tensor([[0.0, NAN], [0.0, INF], [-INF, -INF], [-INF, -5.0]])
    arguments = (torch.full((4,), temperature, dtype=torch.float64), torch.arange(4), torch.arange(4))
    for function in (sample_gumbel_ref, sample_gumbel):
        assert function(logits, *arguments).tolist() == [-1, -1, -1, 1]


def test_empty_batch():
    empty = torch.zeros(0, dtype=torch.int64)
    assert sample_gumbel(torch.zeros(0, 4), empty.double(), empty, empty).shape == (0,)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("logits", 0, torch.zeros(2, 5, dtype=torch.float16)),
        ("temperature", 1, torch.ones(2)),
        ("seeds", 2, torch.zeros(2, dtype=torch.int32)),
        ("positions", 3, torch.zeros(3, dtype=torch.int64)),
    ],
)
def test_argument_errors(name, index, value):
    arguments = [torch.zeros(2, 5), torch.ones(2, dtype=torch.float64), torch.arange(2), torch.arange(2)]
    arguments[index] = value
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        sample_gumbel(*arguments)
