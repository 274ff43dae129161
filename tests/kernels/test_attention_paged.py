"""attention_paged against a float64 formula, and both of its kernels against the reference."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.attention_paged import attention_paged, attention_paged_ref
from deepinfer_kernels.attention_paged_decode import MIN_SPLIT_TOKENS
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.testing.generators import make_paged_batch, make_strided
from deepinfer_kernels.testing.numeric import assert_close, assert_identical

# (q_lens, seq_lens): decode only; prefill only; mixed with requests of no rows and of no positions; chunks at odd
# places; one long decode row in several splits beside short ones.
BATCHES = {
    "none": ([], []),
    "decode": ([1, 1, 1], [1, 17, 63]),
    "prefill": ([5], [5]),
    "mixed": ([1, 7, 0, 1, 33], [300, 40, 9, 0, 33]),
    "chunks": ([2, 15, 40], [66, 15, 101]),
    "splits": ([1, 1], [3 * MIN_SPLIT_TOKENS + 5, 20]),
}
# (num_qo_heads, num_kv_heads, head_dim)
MAIN_HEADS = [(3, 1, 64), (8, 1, 128)]
FURTHER_HEADS = [(2, 2, 64), (9, 3, 64), (2, 2, 128), (3, 1, 128), (6, 2, 80), (3, 1, 96)]
CASES = [(name, heads) for name in BATCHES for heads in MAIN_HEADS]
CASES += [(name, heads) for name in ("mixed", "splits") for heads in FURTHER_HEADS]


def compute_float64(batch, softmax_scale, sliding_window):
    """One query and one head at a time, on the dense keys and values."""
    out = torch.zeros(batch.q.shape, dtype=torch.float64)
    starts = batch.cu_seqlens_q.tolist()
    group = batch.q.shape[1] // batch.k_cache.shape[2]
    for r, seq_len in enumerate(batch.seq_lens.tolist()):
        q_len = starts[r + 1] - starts[r]
        for i in range(q_len if seq_len else 0):
            position = seq_len - q_len + i
            first = 0 if sliding_window is None else max(0, position - sliding_window + 1)
            for h in range(batch.q.shape[1]):
                k = batch.keys[r][first : position + 1, h // group].double()
                v = batch.values[r][first : position + 1, h // group].double()
                weights = torch.softmax(softmax_scale * (k @ batch.q[starts[r] + i, h].double()), dim=0)
                out[starts[r] + i, h] = weights @ v
    return out


@pytest.mark.parametrize("sliding_window", [None, 1, 13])
@pytest.mark.parametrize("name", BATCHES)
def test_reference_follows_formula(name, sliding_window):
    batch = make_paged_batch(*BATCHES[name], num_qo_heads=6, num_kv_heads=2, head_dim=16)
    got = attention_paged_ref(*batch.arguments, softmax_scale=0.25, sliding_window=sliding_window)
    expected = compute_float64(batch, 0.25, sliding_window)
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "heads"), CASES, ids=str)
def test_kernel_equals_reference(name, heads):
    num_qo_heads, num_kv_heads, head_dim = heads
    batch = make_paged_batch(*BATCHES[name], num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
    scale = head_dim**-0.5
    expected = attention_paged_ref(*batch.arguments, softmax_scale=scale)
    assert_close(attention_paged(*batch.arguments, softmax_scale=scale), expected)


@pytest.mark.parametrize("sliding_window", [1, 16, 31, 100, 5000])
def test_sliding_window(sliding_window):
    batch = make_paged_batch([1, 40, 1], [300, 130, 7], num_qo_heads=3, num_kv_heads=1, head_dim=64)
    options = {"softmax_scale": 0.125, "sliding_window": sliding_window}
    assert_close(attention_paged(*batch.arguments, **options), attention_paged_ref(*batch.arguments, **options))


@pytest.mark.parametrize("block_size", [16, 64, 128])
@pytest.mark.parametrize("dtypes", [(torch.float16, torch.float16), (torch.float32, torch.float16)], ids=str)
def test_half_precision_and_block_sizes(dtypes, block_size):
    dtype, cache_dtype = dtypes
    batch = make_paged_batch(
        [1, 21, 1], [290, 90, 5], num_qo_heads=8, num_kv_heads=1, head_dim=64,
        block_size=block_size, dtype=dtype, cache_dtype=cache_dtype,
    )  # fmt: skip
    expected = attention_paged_ref(*batch.arguments, softmax_scale=0.125)
    assert_close(attention_paged(*batch.arguments, softmax_scale=0.125), expected)


def test_strided_queries_int64_indices_and_given_output():
    batch = make_paged_batch([1, 9], [30, 40], num_qo_heads=3, num_kv_heads=1, head_dim=64)
    q, k_cache, v_cache, block_table, seq_lens, cu_seqlens_q = batch.arguments
    out = torch.full_like(q, 9.0)
    got = attention_paged(
        make_strided(q), k_cache, v_cache, block_table.long(), seq_lens.long(), cu_seqlens_q.long(),
        softmax_scale=0.125, out=out,
    )  # fmt: skip
    assert got is out
    assert_identical(out, attention_paged(*batch.arguments, softmax_scale=0.125))


def test_rows_of_no_request_are_left_alone():
    batch = make_paged_batch([1, 2], [30, 40], num_qo_heads=3, num_kv_heads=1, head_dim=64)
    q = torch.cat((batch.q, batch.q[:2]))
    for function in (attention_paged, attention_paged_ref):
        out = torch.full_like(q, 9.0)
        function(q, *batch.arguments[1:], softmax_scale=0.125, out=out)
        assert (out[3:] == 9.0).all()


def test_bits_do_not_depend_on_the_batch_or_on_the_bounds():
    """A decode row and a chunk alone, in a mixed batch, with exact bounds and with none."""
    long = 2 * MIN_SPLIT_TOKENS + 9
    batch = make_paged_batch([1, 12, 1], [long, 100, 40], num_qo_heads=3, num_kv_heads=1, head_dim=64)
    whole = attention_paged(*batch.arguments, softmax_scale=0.125)
    bounded = attention_paged(*batch.arguments, softmax_scale=0.125, max_seqlen_q=12, max_seqlen_k=long)
    assert_identical(bounded, whole)
    starts = batch.cu_seqlens_q.tolist()
    for r, seq_len in enumerate(batch.seq_lens.tolist()):
        rows = slice(starts[r], starts[r + 1])
        alone = attention_paged(
            batch.q[rows], batch.k_cache, batch.v_cache, batch.block_table[r : r + 1], batch.seq_lens[r : r + 1],
            torch.tensor([0, starts[r + 1] - starts[r]], dtype=torch.int32),
            softmax_scale=0.125, max_seqlen_k=seq_len,
        )  # fmt: skip
        assert_identical(alone, whole[rows])


def test_nan_of_one_request_stays_with_it():
    batch = make_paged_batch([1, 3, 1], [20, 20, 20], num_qo_heads=3, num_kv_heads=1, head_dim=64)
    first_block = int(batch.block_table[1, 0])
    batch.v_cache[first_block] = float("nan")
    for function in (attention_paged, attention_paged_ref):
        out = function(*batch.arguments, softmax_scale=0.125)
        assert out.isnan().flatten(1).any(dim=1).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("q", {"q": torch.zeros(4, 192)}),
        ("q", {"q": torch.zeros(4, 6, 64, dtype=torch.float64)}),
        (
            "head_dim",
            {"q": torch.zeros(4, 6, 320), **dict.fromkeys(("k_cache", "v_cache"), torch.zeros(5, 16, 2, 320))},
        ),
        ("num_qo_heads", {"q": torch.zeros(4, 5, 64)}),
        ("k_cache", {"k_cache": torch.zeros(5, 16, 2, 32)}),
        ("v_cache", {"v_cache": torch.zeros(4, 16, 2, 64)}),
        ("v_cache", {"v_cache": torch.zeros(10, 16, 2, 64)[::2]}),
        ("block_size", dict.fromkeys(("k_cache", "v_cache"), torch.zeros(5, 24, 2, 64))),
        ("block_size", dict.fromkeys(("k_cache", "v_cache"), torch.zeros(5, 8, 2, 64))),
        ("block_table", {"block_table": torch.zeros(2, dtype=torch.int32)}),
        ("block_table", {"block_table": torch.zeros(2, 3)}),
        ("seq_lens", {"seq_lens": torch.zeros(3, dtype=torch.int32)}),
        ("cu_seqlens_q", {"cu_seqlens_q": torch.zeros(2, dtype=torch.int32)}),
        ("softmax_scale", {"softmax_scale": 0.0}),
        ("softmax_scale", {"softmax_scale": float("nan")}),
        ("sliding_window", {"sliding_window": 0}),
        ("max_seqlen_q", {"max_seqlen_q": 5}),
        ("max_seqlen_k", {"max_seqlen_k": 49}),
        ("out", {"out": torch.zeros(4, 6, 64, dtype=torch.float16)}),
        ("out", {"out": torch.zeros(8, 6, 64)[::2]}),
    ],
)
def test_argument_errors(name, change):
    arguments = {
        "q": torch.zeros(4, 6, 64),
        "k_cache": torch.zeros(5, 16, 2, 64),
        "v_cache": torch.zeros(5, 16, 2, 64),
        "block_table": torch.zeros(2, 3, dtype=torch.int32),
        "seq_lens": torch.zeros(2, dtype=torch.int32),
        "cu_seqlens_q": torch.zeros(3, dtype=torch.int32),
        "softmax_scale": 0.125,
    }
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        attention_paged(**(arguments | change))
