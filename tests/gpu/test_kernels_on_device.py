"""Every operator on a CUDA device against its reference, in the dtypes that Triton's interpreter gets wrong too."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.attention_paged import attention_paged, attention_paged_ref
from deepinfer_kernels.sample_gumbel import sample_gumbel, sample_gumbel_ref
from deepinfer_kernels.sample_penalties import sample_penalties, sample_penalties_ref
from deepinfer_kernels.testing.cases import iterate_cases
from deepinfer_kernels.testing.generators import make_paged_batch
from deepinfer_kernels.testing.numeric import DOT_TOLERANCES, TOLERANCES, assert_identical

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]
CASES = {case.name: case for case in iterate_cases(is_full=True)}


def copy_of(arguments):
    return tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments)


def assert_near(got, expected, *, has_dot):
    if not got.is_floating_point():
        assert_identical(got, expected)
        return
    atol, rtol = (DOT_TOLERANCES if has_dot else TOLERANCES)[expected.dtype]
    torch.testing.assert_close(got, expected, atol=atol, rtol=rtol, equal_nan=True)


@pytest.mark.parametrize("num_tokens", [1, 5, 40])
@pytest.mark.parametrize("name", CASES)
def test_kernel_equals_reference(name, num_tokens):
    case = CASES[name]
    call = case.prepare(num_tokens, 700, torch.device("cuda"))
    own, others = copy_of(call.arguments), copy_of(call.arguments)
    got, expected = case.function(*own, **call.options), case.reference(*others, **call.options)
    results = [*(got if isinstance(got, tuple) else (got,)), *own]
    wanted = [*(expected if isinstance(expected, tuple) else (expected,)), *others]
    if case.op == "sample_truncate":
        # The kernel sums in float32: tokens at the cut, of which a large vocabulary has many alike, may differ.
        num_kept = torch.isfinite(others[0]).sum(dim=1)
        assert ((own[0] != others[0]).sum(dim=1) <= 2 + num_kept // 1000).all()
        return
    for a, b in zip(results, wanted, strict=True):
        if isinstance(a, torch.Tensor):
            assert_near(a, b, has_dot=case.has_dot)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("sliding_window", [None, 100])
@pytest.mark.parametrize("block_size", [16, 32, 128])
def test_mixed_batch(block_size, sliding_window, dtype):
    batch = make_paged_batch(
        [1, 65, 0, 1, 300, 2], [5000, 1000, 9, 0, 300, 257], num_qo_heads=24, num_kv_heads=3, head_dim=128,
        block_size=block_size, dtype=dtype, device="cuda",
    )  # fmt: skip
    options = {"softmax_scale": 128**-0.5, "sliding_window": sliding_window}
    got = attention_paged(*batch.arguments, **options)
    assert_near(got, attention_paged_ref(*batch.arguments, **options), has_dot=True)


def test_bits_do_not_depend_on_the_batch():
    batch = make_paged_batch(
        [1, 64, 1], [3000, 700, 90], num_qo_heads=8, num_kv_heads=2, head_dim=64,
        block_size=64, dtype=torch.bfloat16, device="cuda",
    )  # fmt: skip
    whole = attention_paged(*batch.arguments, softmax_scale=0.125)
    starts = batch.cu_seqlens_q.tolist()
    for r in range(3):
        rows = slice(starts[r], starts[r + 1])
        alone = attention_paged(
            batch.q[rows], batch.k_cache, batch.v_cache, batch.block_table[r : r + 1], batch.seq_lens[r : r + 1],
            torch.tensor([0, starts[r + 1] - starts[r]], dtype=torch.int32, device="cuda"), softmax_scale=0.125,
        )  # fmt: skip
        assert_identical(alone, whole[rows])


def test_draws_and_penalties_have_the_bits_of_the_host():
    for name, function, reference in (
        ("sample_gumbel/fp32", sample_gumbel, sample_gumbel_ref),
        ("sample_penalties/fp32", sample_penalties, sample_penalties_ref),
    ):
        call = CASES[name].prepare(64, 0, torch.device("cuda"))
        on_host = tuple(a.cpu() for a in call.arguments)
        got, expected = function(*call.arguments), reference(*on_host)
        if got is not None:
            assert_identical(got.cpu(), expected)
        assert_identical(call.arguments[0].cpu(), on_host[0])
