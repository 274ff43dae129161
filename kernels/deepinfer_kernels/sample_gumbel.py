"""Draw one token per row from softmax(logits / temperature) by the Gumbel-max trick with hashed noise.

    score[v] = (float64(logits[t, v]) - float64(max logits[t])) / temperature[t] + noise(seeds[t], positions[t], v)
    token_id = argmax score, the lower id on ties

The noise is a pure function of its three arguments. In integers modulo 2^64, with G = 0x9E3779B97F4A7C15 and
mix(z): z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9; z = (z ^ z >> 27) * 0x94D049BB133111EB; z ^ z >> 31
(the finaliser of SplitMix64, Steele, Lea and Flood 2014):

    key = mix(mix(seed + G) + G * (position + 1)),   h = mix(key + G * (v + 1)),   u = ((h >> 12) + 0.5) * 2^-52
    noise = -log(-log(u))

log is a fixed sequence of float64 additions, multiplications and divisions: with m 2^e = x, sqrt(1/2) <= m < sqrt(2),
s = (m - 1) / (m + 1): log x = e ln 2 + 2 s (1 + s^2/3 + ... + s^22/23), Horner from the right. Every operation is
rounded on its own, so a device draws the same token as the host from the same logits.
Temperature 0 is greedy: the score is the logit. A row that holds a NaN or +inf, or only -inf, gives -1.
Shapes: logits [T, V] float32; temperature [T] float64; seeds, positions [T] int64 (a seed's 64 bits) -> [T] int64.
Bytes moved: 2 * logits.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import check_tensor
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import UNFUSED_OPTIONS, device_guard
from deepinfer_kernels.sample_greedy import check_logits

BLOCK_V = 1024
NUM_TERMS = 12
LN_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476
GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIER_1 = 0xBF58476D1CE4E5B9
MULTIPLIER_2 = 0x94D049BB133111EB


def sample_gumbel_ref(
    logits: torch.Tensor, temperature: torch.Tensor, seeds: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Torch reference of `sample_gumbel`."""
    if logits.shape[0] == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    golden = _as_signed(GOLDEN)
    counters = torch.arange(1, logits.shape[1] + 1, dtype=torch.int64, device=logits.device) * golden
    keys = _mix(_mix(seeds + golden) + golden * (positions + 1))
    uniform = (_shift_right(_mix(keys[:, None] + counters), 12).double() + 0.5) * 2.0**-52
    noise = -_log(-_log(uniform))
    best = logits.amax(dim=-1, keepdim=True)
    is_greedy = (temperature == 0)[:, None]
    scores = (logits.double() - best) / torch.where(is_greedy, 1.0, temperature[:, None])
    scores = torch.where(is_greedy, logits.double(), scores + noise)
    ids = (scores == scores.amax(dim=-1, keepdim=True)).to(torch.uint8).argmax(dim=-1)
    return torch.where(torch.isfinite(best.squeeze(1)), ids, -1)


def _as_signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _shift_right(z: torch.Tensor, count: int) -> torch.Tensor:
    """Logical shift of the 64 bits of an int64."""
    return (z >> count) & ((1 << (64 - count)) - 1)


def _mix(z: torch.Tensor) -> torch.Tensor:
    z = (z ^ _shift_right(z, 30)) * _as_signed(MULTIPLIER_1)
    z = (z ^ _shift_right(z, 27)) * _as_signed(MULTIPLIER_2)
    return z ^ _shift_right(z, 31)


def _log(x: torch.Tensor) -> torch.Tensor:
    mantissa, exponent = torch.frexp(x)
    is_small = mantissa < SQRT_HALF
    mantissa = torch.where(is_small, mantissa * 2.0, mantissa)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = torch.full_like(square, 1.0 / (2 * NUM_TERMS - 1))
    for term in range(NUM_TERMS - 2, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return (exponent - is_small.int()).double() * LN_2 + 2.0 * s * series


@jit
def _mix_tile(z: tl.tensor, MULTIPLIER_1: tl.constexpr, MULTIPLIER_2: tl.constexpr) -> tl.tensor:
    z = (z ^ (z >> 30)) * MULTIPLIER_1
    z = (z ^ (z >> 27)) * MULTIPLIER_2
    return z ^ (z >> 31)


@jit
def _log_tile(x: tl.tensor, LN_2: tl.constexpr, SQRT_HALF: tl.constexpr, NUM_TERMS: tl.constexpr) -> tl.tensor:
    """Logarithm of positive normal float64 numbers."""
    bits = x.to(tl.uint64, bitcast=True)
    exponent = (bits >> 52).to(tl.int32) - 1022
    mantissa = ((bits & 0x000FFFFFFFFFFFFF) | 0x3FE0000000000000).to(tl.float64, bitcast=True)
    is_small = mantissa < SQRT_HALF
    mantissa = tl.where(is_small, mantissa * 2.0, mantissa)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = tl.zeros_like(square) + 1.0 / (2 * NUM_TERMS - 1)
    for step in tl.static_range(NUM_TERMS - 1):
        series = series * square + 1.0 / (2 * (NUM_TERMS - 2 - step) + 1)
    return (exponent - is_small.to(tl.int32)).to(tl.float64) * LN_2 + 2.0 * s * series


@jit
def _sample_gumbel_kernel(
    logits_ptr: tl.tensor,
    temperature_ptr: tl.tensor,
    seeds_ptr: tl.tensor,
    positions_ptr: tl.tensor,
    ids_ptr: tl.tensor,
    vocab_size: tl.tensor,
    stride_lt: tl.tensor,
    GOLDEN: tl.constexpr,
    MULTIPLIER_1: tl.constexpr,
    MULTIPLIER_2: tl.constexpr,
    LN_2: tl.constexpr,
    SQRT_HALF: tl.constexpr,
    NUM_TERMS: tl.constexpr,
    BLOCK_V: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * stride_lt
    lanes = tl.arange(0, BLOCK_V)
    temperature = tl.load(temperature_ptr + row)
    is_greedy = temperature == 0.0
    divisor = tl.where(is_greedy, 1.0, temperature)
    golden = tl.full((), GOLDEN, tl.uint64)
    seed = tl.load(seeds_ptr + row).to(tl.uint64)
    position = tl.load(positions_ptr + row).to(tl.uint64)
    key = _mix_tile(seed + golden, MULTIPLIER_1, MULTIPLIER_2) + golden * (position + 1)
    key = _mix_tile(key, MULTIPLIER_1, MULTIPLIER_2)

    largest = tl.full((BLOCK_V,), float("-inf"), tl.float32)
    num_bad = tl.zeros((BLOCK_V,), tl.int32)
    for start in range(0, vocab_size, BLOCK_V):
        x = tl.load(row_ptr + start + lanes, mask=start + lanes < vocab_size, other=float("-inf"))
        num_bad += ((x != x) | (x == float("inf"))).to(tl.int32)
        largest = tl.maximum(largest, x)
    best = tl.max(largest, axis=0)
    failed = (tl.sum(num_bad, axis=0) > 0) | (best == float("-inf"))
    base = tl.where(failed, 0.0, best).to(tl.float64)

    best_scores = tl.full((BLOCK_V,), float("-inf"), tl.float64)
    best_ids = tl.zeros((BLOCK_V,), tl.int32)
    for start in range(0, vocab_size, BLOCK_V):
        ids = start + lanes
        x = tl.load(row_ptr + ids, mask=ids < vocab_size, other=float("-inf")).to(tl.float64)
        h = _mix_tile(key + golden * (ids.to(tl.uint64) + 1), MULTIPLIER_1, MULTIPLIER_2)
        uniform = ((h >> 12).to(tl.float64) + 0.5) * 2.220446049250313e-16
        noise = -_log_tile(-_log_tile(uniform, LN_2, SQRT_HALF, NUM_TERMS), LN_2, SQRT_HALF, NUM_TERMS)
        scores = (x - base) / divisor + tl.where(is_greedy, 0.0, noise)
        is_better = scores > best_scores
        best_scores = tl.where(is_better, scores, best_scores)
        best_ids = tl.where(is_better, ids, best_ids)
    top = tl.max(best_scores, axis=0)
    chosen = tl.min(tl.where(best_scores == top, best_ids, 2147483647), axis=0)
    tl.store(ids_ptr + row, tl.where(failed, -1, chosen).to(tl.int64))


def sample_gumbel(
    logits: torch.Tensor, temperature: torch.Tensor, seeds: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Draw a token per row; the same arguments always give the same token, whatever else is in the batch.

    Args:
        logits: [T, V] fp32, contiguous last dim, V >= 1; -inf for tokens that must not be drawn; T may be 0.
        temperature: [T] fp64, >= 0; 0 is greedy.
        seeds: [T] int64, the 64 bits of each row's seed.
        positions: [T] int64, absolute position of the token to be drawn.

    Returns:
        [T] int64; -1 for a row that holds a NaN or +inf, or only -inf.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_logits(logits)
    num_rows, vocab_size = logits.shape
    check_tensor("temperature", temperature, shape=(num_rows,), dtypes=(torch.float64,), device=logits.device)
    for name, tensor in (("seeds", seeds), ("positions", positions)):
        check_tensor(name, tensor, shape=(num_rows,), dtypes=(torch.int64,), device=logits.device)
    ids = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows == 0:
        return ids
    with device_guard(logits):
        _sample_gumbel_kernel[(num_rows,)](
            logits, temperature, seeds, positions, ids, vocab_size, logits.stride(0),
            GOLDEN=GOLDEN, MULTIPLIER_1=MULTIPLIER_1, MULTIPLIER_2=MULTIPLIER_2, LN_2=LN_2, SQRT_HALF=SQRT_HALF,
            NUM_TERMS=NUM_TERMS, BLOCK_V=BLOCK_V, num_warps=8, **UNFUSED_OPTIONS,
        )  # fmt: skip
    return ids
