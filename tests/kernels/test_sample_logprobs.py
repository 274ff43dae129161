"""sample_logprobs against a float64 log softmax and a count, and its kernel against the reference."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.sample_logprobs import sample_logprobs, sample_logprobs_ref
from deepinfer_kernels.testing.generators import make_generator, make_normal, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

SHAPES = [(0, 5), (1, 1), (3, 2), (7, 1000), (2, 9001)]


def make_case(shape, dtype=torch.float32):
    logits = make_normal(*shape, dtype=dtype, seed=1, scale=3.0)
    return logits, torch.randint(0, shape[1], (shape[0],), generator=make_generator(2))


@pytest.mark.parametrize("shape", SHAPES)
def test_reference_follows_formula(shape):
    logits, token_ids = make_case(shape)
    logits = logits.round()
    logprobs, ranks = sample_logprobs_ref(logits, token_ids)
    expected = torch.log_softmax(logits.double(), dim=-1).gather(1, token_ids[:, None])[:, 0]
    torch.testing.assert_close(logprobs.double(), expected, rtol=1e-6, atol=2e-6)
    order = logits.sort(dim=-1, descending=True, stable=True).indices
    assert torch.equal(ranks, (order == token_ids[:, None]).to(torch.uint8).argmax(dim=-1) + 1 if shape[0] else ranks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernel_equals_reference(shape, dtype):
    logits, token_ids = make_case(shape, dtype)
    expected, expected_ranks = sample_logprobs_ref(logits, token_ids)
    logprobs, ranks = sample_logprobs(logits, token_ids.int())
    assert_close(logprobs, expected)
    assert_identical(ranks, expected_ranks)


def test_strided_input_and_masked_tokens():
    logits, token_ids = make_case((3, 70))
    logits[:, ::3] = float("-inf")
    logits[torch.arange(3), token_ids] = 1.0
    expected, expected_ranks = sample_logprobs_ref(logits, token_ids)
    logprobs, ranks = sample_logprobs(make_strided(logits), token_ids)
    assert_close(logprobs, expected)
    assert_identical(ranks, expected_ranks)


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # the interpreter's numpy, where NaN is the answer
def test_nan_and_unknown_ids_give_nan():
    logits = torch.zeros(3, 4)
    logits[1, 2] = float("nan")
    logprobs, _ = sample_logprobs(logits, torch.tensor([0, 0, 4]))
    assert logprobs.isnan().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("name", "logits", "token_ids"),
    [
        ("logits", torch.zeros(2, 0), torch.zeros(2, dtype=torch.int64)),
        ("token_ids", torch.zeros(2, 4), torch.zeros(3, dtype=torch.int64)),
        ("token_ids", torch.zeros(2, 4), torch.zeros(2)),
    ],
)
def test_argument_errors(name, logits, token_ids):
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        sample_logprobs(logits, token_ids)
