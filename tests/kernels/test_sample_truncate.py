"""sample_truncate against a plain loop over ranked tokens, and its kernel against the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.sample_truncate import sample_truncate, sample_truncate_ref
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_identical

INF, NAN = float("inf"), float("nan")
# (temperature, top_k, top_p, min_p)
OPTIONS = [
    (1.0, -1, 1.0, 0.0),
    (0.7, 1, 1.0, 0.0),
    (1.0, 5, 1.0, 0.0),
    (1.0, 10**6, 1.0, 0.0),
    (1.3, 0, 0.9, 0.0),
    (0.5, 0, 1e-6, 0.0),
    (1.0, 30, 0.5, 0.0),
    (2.0, 0, 0.999, 0.05),
    (1.0, 40, 0.8, 0.2),
    (1.0, 0, 1.0, 1.0),
    (0.0, 5, 0.5, 0.5),
]


def as_tensors(options):
    temperature, top_k, top_p, min_p = zip(*options, strict=True)
    floats = [torch.tensor(x, dtype=torch.float64) for x in (temperature, top_p, min_p)]
    return floats[0], torch.tensor(top_k, dtype=torch.int32), floats[1], floats[2]


def truncate_by_hand(row, temperature, top_k, top_p, min_p):
    if temperature == 0:
        return row
    ranked = sorted(range(row.size), key=lambda v: (-row[v], v))
    if 0 < top_k < row.size:
        ranked = ranked[:top_k]
    weights = [math.exp((float(row[v]) - float(row[ranked[0]])) / temperature) for v in ranked]
    kept, before = [], 0.0
    for v, weight in zip(ranked, weights, strict=True):
        if kept and top_p < 1 and before >= top_p * math.fsum(weights):
            break
        before += weight
        kept.append(v)
    if min_p > 0:
        bound = np.float32(float(row[ranked[0]]) + math.log(min_p) * temperature)
        kept = [v for v in kept if row[v] >= bound]
    result = np.full_like(row, -np.inf)
    result[kept] = row[kept]
    return result


def make_rows(vocab_size, kind):
    logits = make_normal(len(OPTIONS), vocab_size, dtype=torch.float32, seed=3, scale=3.0)
    if kind == "ties":
        return logits.round()
    if kind == "equal":
        return torch.full_like(logits, -2.5)
    if kind == "masked":
        return logits.masked_fill(logits < 0, -INF).index_fill(1, torch.tensor([0]), 1.0)
    return logits


@pytest.mark.parametrize("kind", ["distinct", "ties", "equal", "masked"])
@pytest.mark.parametrize("vocab_size", [1, 37, 600])
def test_reference_and_kernel_keep_what_the_rule_keeps(vocab_size, kind):
    logits = make_rows(vocab_size, kind)
    by_hand = [truncate_by_hand(row, *options) for row, options in zip(logits.numpy(), OPTIONS, strict=True)]
    expected = torch.from_numpy(np.stack(by_hand))
    for function in (sample_truncate_ref, sample_truncate):
        got = logits.clone()
        function(got, *as_tensors(OPTIONS))
        assert_identical(got, expected)


def test_rows_from_which_nothing_can_be_drawn_are_left_alone():
    logits = torch.tensor([[1.0, NAN, 2.0], [1.0, INF, 2.0], [-INF, -INF, -INF], [3.0, 1.0, 2.0]])
    expected = logits.clone()
    expected[3, 1:] = -INF
    for function in (sample_truncate_ref, sample_truncate):
        got = logits.clone()
        function(got, *as_tensors([(1.0, 1, 0.5, 0.1)] * 4))
        assert_identical(got, expected)


def test_strided_input_keeps_its_surroundings():
    logits = make_rows(60, "distinct")
    expected = logits.clone()
    sample_truncate_ref(expected, *as_tensors(OPTIONS))
    strided = make_strided(logits)
    sample_truncate(strided, *as_tensors(OPTIONS))
    assert_identical(strided.contiguous(), expected)
    assert strided.as_strided((len(OPTIONS), 2), (65, 1), 0).isnan().all()


def test_empty_batch():
    logits = torch.zeros(0, 7)
    sample_truncate(logits, *(t[:0] for t in as_tensors(OPTIONS)))
    assert logits.shape == (0, 7)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("logits", 0, torch.zeros(1, 5, dtype=torch.bfloat16)),
        ("temperature", 1, torch.ones(1)),
        ("top_k", 2, torch.ones(1, dtype=torch.int64)),
        ("top_p", 3, torch.ones(2, dtype=torch.float64)),
        ("min_p", 4, torch.ones(1, 1, dtype=torch.float64)),
    ],
)
def test_argument_errors(name, index, value):
    arguments = [torch.zeros(1, 5), *as_tensors([(1.0, 1, 1.0, 0.0)])]
    arguments[index] = value
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        sample_truncate(*arguments)
