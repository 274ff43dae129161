"""sample_penalties against the host's rule written out in numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.sample_penalties import sample_penalties, sample_penalties_ref
from deepinfer_kernels.testing.generators import make_generator, make_normal
from deepinfer_kernels.testing.numeric import assert_identical


def make_case(num_rows, vocab_size, num_entries):
    generator = make_generator(1)
    logits = make_normal(num_rows, vocab_size, dtype=torch.float32, seed=2, scale=5.0)
    places = torch.randperm(num_rows * vocab_size, generator=generator)[:num_entries]
    counts = torch.randint(-1, 4, (num_entries,), generator=generator).int()
    biases = torch.where(counts % 2 == 0, 0.0, torch.randn(num_entries, generator=generator))
    if num_entries > 2:
        biases[2] = float("-inf")
    repetition = torch.rand(num_rows, generator=generator) + 0.7
    frequency, presence = (torch.randn(num_rows, generator=generator) for _ in range(2))
    rows, token_ids = (places // vocab_size).int(), (places % vocab_size).int()
    return [logits, rows, token_ids, counts, biases, repetition, frequency, presence]


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 50, 0), (3, 50, 77), (5, 1000, 700)])
def test_kernel_and_reference_follow_the_rule(shape):
    arguments = make_case(*shape)
    expected = arguments[0].numpy().copy()
    _, rows, token_ids, counts, biases, repetition, frequency, presence = (a.numpy() for a in arguments)
    for r, v, count, bias in zip(rows, token_ids, counts, biases, strict=True):
        x = expected[r, v]
        if count >= 0:
            x = x / repetition[r] if x > 0 else x * repetition[r]
        if count > 0:
            x = x - frequency[r] * np.float32(count)
            x = x - presence[r]
        expected[r, v] = x + bias
    for function in (sample_penalties_ref, sample_penalties):
        logits = arguments[0].clone()
        function(logits, *arguments[1:])
        assert_identical(logits, torch.from_numpy(expected))


def test_entries_outside_the_logits():
    arguments = make_case(2, 10, 2)
    arguments[1][0], arguments[2][1] = 2, -1
    before = arguments[0].clone()
    sample_penalties(*arguments)
    assert_identical(arguments[0], before)
    with pytest.raises(KernelArgumentError, match=r"^rows must be in \[0, 2\)"):
        sample_penalties_ref(*arguments)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("logits", 0, torch.zeros(2, 10, dtype=torch.float16)),
        ("rows", 1, torch.zeros(2, dtype=torch.int64)),
        ("token_ids", 2, torch.zeros(3, dtype=torch.int32)),
        ("output_counts", 3, torch.zeros(2)),
        ("biases", 4, torch.zeros(2, dtype=torch.float64)),
        ("repetition", 5, torch.zeros(3)),
        ("frequency", 6, torch.zeros(2, 1)),
        ("presence", 7, torch.zeros(2, dtype=torch.int32)),
    ],
)
def test_argument_errors(name, index, value):
    arguments = make_case(2, 10, 2)
    arguments[index] = value
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        sample_penalties(*arguments)
