"""sample_greedy: the first largest logit, and -1 where there is none."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.sample_greedy import sample_greedy, sample_greedy_ref
from deepinfer_kernels.testing.generators import make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_identical

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 2), (5, 1000), (2, 9001)])
def test_kernel_and_reference_take_the_first_maximum(shape, dtype):
    # Rounded to few values, so that most rows have ties.
    logits = make_normal(*shape, dtype=dtype, seed=1).round()
    expected = torch.tensor(logits.float().numpy().argmax(axis=1).tolist(), dtype=torch.int64)
    for function in (sample_greedy_ref, sample_greedy):
        assert_identical(function(logits), expected)


@pytest.mark.parametrize("position", [0, 700, 4096, 8999])
def test_tie_across_tiles(position):
    logits = torch.zeros(1, 9000)
    logits[0, [position, 8999]] = 3.0
    assert sample_greedy(logits).item() == sample_greedy_ref(logits).item() == position


def test_strided_input():
    logits = make_normal(3, 70, dtype=torch.float32, seed=1)
    assert_identical(sample_greedy(make_strided(logits)), sample_greedy_ref(logits))


def test_rows_without_a_choice():
    rows = [[0.0, 1.0, NAN], [NAN, NAN, NAN], [0.0, INF, 1.0], [-INF, -INF, -INF], [-INF, 2.0, -INF], [-0.0, 0.0, -1.0]]
    for function in (sample_greedy_ref, sample_greedy):
        assert function(torch.tensor(rows)).tolist() == [-1, -1, -1, -1, 1, 0]


@pytest.mark.parametrize(
    "logits", [torch.zeros(4), torch.zeros(2, 0), torch.zeros(2, 4, dtype=torch.int64), torch.zeros(4, 2).t()]
)
def test_argument_errors(logits):
    with pytest.raises(KernelArgumentError, match=r"^logits must be "):
        sample_greedy(logits)
