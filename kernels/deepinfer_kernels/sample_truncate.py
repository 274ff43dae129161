"""Truncation of the candidates of each row: top-k, then top-p, then min-p; in place.

With tokens ranked by descending logit (lower id first on ties) and p = softmax(logits / temperature) over the tokens
that top-k kept:

    top-k keeps the first k tokens
    top-p keeps a token iff the sum of p over the tokens ranked before it is < top_p (so at least one)
    min-p keeps a token iff its logit is >= float32(max logit + log(min_p) * temperature)

What is dropped becomes -inf, what is kept stays as it is.
Shapes: logits [T, V] float32; temperature, top_p, min_p [T] float64; top_k [T] int32.
Numerics: the reference sorts and sums in float64. The kernel does not sort: a radix search over the order-preserving
integer image of a float finds the last kept value and how many of its ties stay; it sums p in float32, so a token
whose exclusive sum is within about 1e-6 of top_p may fall on the other side than in the reference.
Bytes moved: logits.nbytes read and written, plus up to 20 reads that the cache serves.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import check_tensor
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, device_guard
from deepinfer_kernels.sample_greedy import check_logits

BLOCK_V = 512
RADIX_BITS = 4


def sample_truncate_ref(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
) -> None:
    """Torch reference of `sample_truncate`."""
    vocab_size = logits.shape[1]
    best = logits.amax(dim=-1, keepdim=True)
    is_open = torch.isfinite(best) & (temperature > 0)[:, None]
    divisor = torch.where(temperature > 0, temperature, 1.0)[:, None]
    ranked, order = logits.sort(dim=-1, descending=True, stable=True)
    k = torch.where((top_k < 1) | (top_k > vocab_size), vocab_size, top_k)[:, None]
    kept = torch.arange(vocab_size, device=logits.device) < k
    weights = torch.exp((ranked.double() - best) / divisor) * kept
    before = weights.cumsum(dim=-1) - weights
    needed = top_p[:, None] * weights.sum(dim=-1, keepdim=True)
    kept[:, 1:] &= ((before < needed) | (top_p >= 1)[:, None])[:, 1:]
    kept &= (ranked >= (best + min_p.log()[:, None] * divisor).float()) | (min_p == 0)[:, None]
    kept = torch.zeros_like(kept).scatter(1, order, kept)
    logits.masked_fill_(is_open & ~kept, float("-inf"))


@jit
def _load_keys(row_ptr: tl.tensor, ids: tl.tensor, vocab_size: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return logits and their keys, uint32 that keep the order; -0.0 counts as 0.0; key 0 behind the vocabulary."""
    x = tl.load(row_ptr + ids, mask=ids < vocab_size, other=float("-inf"))
    bits = (x + 0.0).to(tl.uint32, bitcast=True)
    keys = tl.where(bits >= 0x80000000, ~bits, bits | 0x80000000)
    return x, tl.where(ids < vocab_size, keys, 0)


@jit
def _search(
    row_ptr: tl.tensor,
    vocab_size: tl.tensor,
    best: tl.tensor,
    rate: tl.tensor,
    floor: tl.tensor,
    target: tl.tensor,
    IS_COUNT: tl.constexpr,
    BLOCK_V: tl.constexpr,
    RADIX_BITS: tl.constexpr,
) -> tl.tensor:
    """Return the largest key t such that the tokens with key >= t weigh at least `target` together (0 if none do).

    A token weighs 1 (IS_COUNT) or exp((x - best) * rate) if its key is at least `floor`, else nothing.
    """
    digits = tl.arange(0, 1 << RADIX_BITS).to(tl.uint32)
    prefix = tl.full((), 0, tl.uint32)
    for step in tl.static_range(32 // RADIX_BITS):
        candidates = prefix | (digits << (32 - RADIX_BITS * (step + 1)))
        sums = tl.zeros((1 << RADIX_BITS, BLOCK_V), tl.float32)
        for start in range(0, vocab_size, BLOCK_V):
            x, keys = _load_keys(row_ptr, start + tl.arange(0, BLOCK_V), vocab_size)
            weights = tl.full((BLOCK_V,), 1.0, tl.float32)
            if not IS_COUNT:
                weights = tl.exp((x - best) * rate)
            weights = tl.where((keys >= floor) & (keys > 0), weights, 0.0)
            sums += tl.where(keys[None, :] >= candidates[:, None], weights[None, :], 0.0)
        prefix = tl.max(tl.where(tl.sum(sums, axis=1) >= target, candidates, prefix), axis=0)
    return prefix


@jit
def _weigh_around(
    row_ptr: tl.tensor,
    vocab_size: tl.tensor,
    best: tl.tensor,
    rate: tl.tensor,
    key: tl.tensor,
    BLOCK_V: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Return how many tokens lie above `key`, the sum of their weights exp((x - best) * rate), and the key's weight."""
    num_above = tl.zeros((BLOCK_V,), tl.float32)
    sum_above = tl.zeros((BLOCK_V,), tl.float32)
    weight_at = tl.zeros((BLOCK_V,), tl.float32)
    for start in range(0, vocab_size, BLOCK_V):
        x, keys = _load_keys(row_ptr, start + tl.arange(0, BLOCK_V), vocab_size)
        weights = tl.exp((x - best) * rate)
        num_above += (keys > key).to(tl.float32)
        sum_above += tl.where(keys > key, weights, 0.0)
        weight_at = tl.maximum(weight_at, tl.where(keys == key, weights, 0.0))
    return tl.sum(num_above, axis=0), tl.sum(sum_above, axis=0), tl.max(weight_at, axis=0)


@jit
def _sample_truncate_kernel(
    logits_ptr: tl.tensor,
    temperature_ptr: tl.tensor,
    top_k_ptr: tl.tensor,
    top_p_ptr: tl.tensor,
    min_p_ptr: tl.tensor,
    vocab_size: tl.tensor,
    stride_lt: tl.tensor,
    BLOCK_V: tl.constexpr,
    RADIX_BITS: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperature_ptr + row)
    top_k = tl.load(top_k_ptr + row)
    top_p = tl.load(top_p_ptr + row).to(tl.float32)
    min_p = tl.load(min_p_ptr + row)
    row_ptr = logits_ptr + row * stride_lt

    largest = tl.full((BLOCK_V,), float("-inf"), tl.float32)
    num_bad = tl.zeros((BLOCK_V,), tl.int32)
    for start in range(0, vocab_size, BLOCK_V):
        x, _ = _load_keys(row_ptr, start + tl.arange(0, BLOCK_V), vocab_size)
        num_bad += ((x != x) | (x == float("inf"))).to(tl.int32)
        largest = tl.maximum(largest, x)
    best = tl.max(largest, axis=0)
    is_open = (tl.sum(num_bad, axis=0) == 0) & (best > float("-inf")) & (temperature > 0.0)
    if is_open:
        rate = (1.0 / temperature).to(tl.float32)
        # What stays: keys above `cutoff`, and of those equal to it the first `num_ties` by id.
        cutoff = tl.full((), 0, tl.uint32)
        num_ties = tl.zeros((), tl.float32) + vocab_size
        if (top_k >= 1) & (top_k < vocab_size):
            cutoff = _search(row_ptr, vocab_size, best, rate, cutoff, top_k, True, BLOCK_V, RADIX_BITS)
            num_above, _, _ = _weigh_around(row_ptr, vocab_size, best, rate, cutoff, BLOCK_V)
            num_ties = top_k - num_above
        if top_p < 1.0:
            _, sum_above, weight_at = _weigh_around(row_ptr, vocab_size, best, rate, cutoff, BLOCK_V)
            target = top_p * (sum_above + tl.where(weight_at > 0.0, num_ties * weight_at, 0.0))
            key = _search(row_ptr, vocab_size, best, rate, cutoff, target, False, BLOCK_V, RADIX_BITS)
            # A key below the cutoff means that rounding left the whole sum short of the target: nothing more to drop.
            if key >= cutoff:
                _, sum_above, weight_at = _weigh_around(row_ptr, vocab_size, best, rate, key, BLOCK_V)
                num_wanted = tl.where(weight_at > 0.0, tl.ceil((target - sum_above) / weight_at), vocab_size)
                num_wanted = tl.maximum(num_wanted, 1.0)
                num_ties = tl.where(key == cutoff, tl.minimum(num_ties, num_wanted), num_wanted)
                cutoff = key
        bound = float("-inf")
        if min_p > 0.0:
            bound = (best.to(tl.float64) + tl.log(min_p) * temperature).to(tl.float32)

        num_ties_before = tl.zeros((), tl.int32)
        for start in range(0, vocab_size, BLOCK_V):
            ids = start + tl.arange(0, BLOCK_V)
            x, keys = _load_keys(row_ptr, ids, vocab_size)
            is_tie = ((keys == cutoff) & (ids < vocab_size)).to(tl.int32)
            tie_rank = num_ties_before + tl.cumsum(is_tie, axis=0) - is_tie
            kept = (keys > cutoff) | ((is_tie > 0) & (tie_rank.to(tl.float32) < num_ties))
            tl.store(row_ptr + ids, float("-inf"), mask=(ids < vocab_size) & ~(kept & (x >= bound)))
            num_ties_before += tl.sum(is_tie, axis=0)


def sample_truncate(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
) -> None:
    """Set what top-k, top-p and min-p drop to -inf.

    Args:
        logits: [T, V] fp32, contiguous last dim, V >= 1; **mutated**; T may be 0. A row with a NaN or +inf, or without
            a finite logit, is left alone: no token can be drawn from it.
        temperature: [T] fp64, >= 0; a row of 0 is greedy and left alone.
        top_k: [T] int32; below 1 or above V keeps all.
        top_p: [T] fp64, > 0; 1 or more keeps all.
        min_p: [T] fp64 in [0, 1]; 0 keeps all.

    Raises:
        KernelArgumentError: an argument is not as described (values inside tensors are not looked at).
        KernelUnavailableError: Triton cannot run here.
    """
    check_logits(logits)
    num_rows, vocab_size = logits.shape
    check_tensor("top_k", top_k, shape=(num_rows,), dtypes=(torch.int32,), device=logits.device)
    for name, tensor in (("temperature", temperature), ("top_p", top_p), ("min_p", min_p)):
        check_tensor(name, tensor, shape=(num_rows,), dtypes=(torch.float64,), device=logits.device)
    if num_rows == 0:
        return
    with device_guard(logits):
        _sample_truncate_kernel[(num_rows,)](
            logits, temperature, top_k, top_p, min_p, vocab_size, logits.stride(0),
            BLOCK_V=BLOCK_V, RADIX_BITS=RADIX_BITS, num_warps=8, **COMMON_OPTIONS,
        )  # fmt: skip
