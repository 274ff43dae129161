"""Noise for sampling: a pure function of (seed, absolute position, token id). No state, no generator.

Definition, in integers modulo 2**64, with G = 0x9E3779B97F4A7C15 and `mix` the finaliser of SplitMix64:

    mix(z):  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;  z = (z ^ z >> 27) * 0x94D049BB133111EB;  z ^ z >> 31
    key    = mix(mix(seed + G) + G * (position + 1))
    h      = mix(key + G * (token_id + 1))
    u      = ((h >> 12) + 0.5) * 2**-52                    exact in float64, 0 < u < 1
    noise  = -log(-log(u))                                 standard Gumbel

`log` is `log_exact` below: float64 additions, multiplications and divisions in a fixed order, so that every machine and
every language gives the same bits. A draw from the softmax is the token with the largest

    score  = (float64(logit) - float64(largest logit)) / temperature + noise

and the lower id on ties. A token's noise does not depend on which other tokens are candidates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB
_UNIFORM_BITS = 52

_LN2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
# log(m) = 2 s (1 + s^2/3 + s^4/5 + ...) with s = (m - 1) / (m + 1); |s| <= 0.172, so 12 terms reach 2**-53.
_SERIES = tuple(1.0 / (2 * term + 1) for term in range(12))


def mix(value: int) -> int:
    """Finaliser of SplitMix64, a bijection of 64-bit integers."""
    value = ((value ^ (value >> 30)) * _MULTIPLIER_1) & _MASK
    value = ((value ^ (value >> 27)) * _MULTIPLIER_2) & _MASK
    return value ^ (value >> 31)


def compute_key(seed: int, position: int) -> int:
    """Key of one position of a sequence; `position` counts all tokens before the one to be drawn."""
    return mix((mix((seed + _GOLDEN) & _MASK) + _GOLDEN * (position + 1)) & _MASK)


def make_counters(num_tokens: int) -> NDArray[np.uint64]:
    """G * (token_id + 1) for token ids 0 .. num_tokens - 1."""
    with np.errstate(over="ignore"):
        return np.arange(1, num_tokens + 1, dtype=np.uint64) * np.uint64(_GOLDEN)


def hash_into(
    counters: NDArray[np.uint64], key: int, out: NDArray[np.uint64], scratch: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """h >> 12 for tokens given by their counters; all arrays have the same shape. Returns `out`."""
    np.add(counters, np.uint64(key), out=out)
    for shift, multiplier in ((30, _MULTIPLIER_1), (27, _MULTIPLIER_2)):
        np.right_shift(out, np.uint64(shift), out=scratch)
        np.bitwise_xor(out, scratch, out=out)
        np.multiply(out, np.uint64(multiplier), out=out)
    np.right_shift(out, np.uint64(31), out=scratch)
    np.bitwise_xor(out, scratch, out=out)
    return np.right_shift(out, np.uint64(64 - _UNIFORM_BITS), out=out)


def noise_from_hash(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Gumbel noise from h >> 12."""
    uniform = (hashes.astype(np.float64) + 0.5) * 2.0**-_UNIFORM_BITS
    return -log_exact(-log_exact(uniform))


def compute_noise(counters: NDArray[np.uint64], key: int) -> NDArray[np.float64]:
    """Gumbel noise for tokens given by their counters."""
    return noise_from_hash(hash_into(counters, key, np.empty_like(counters), np.empty_like(counters)))


def find_hash_bound(noise: float) -> int:
    """A number that h >> 12 reaches whenever the noise reaches `noise`; a little too low rather than too high."""
    uniform = math.exp(-math.exp(-noise)) if noise > -3.7 else 0.0
    return max(0, math.floor(uniform * (1.0 - 1e-12) * 2.0**_UNIFORM_BITS) - 1)


def log_exact(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithm of positive float64 numbers, the same bits everywhere; within 2 units in the last place."""
    mantissa, exponent = np.frexp(values)
    is_small = mantissa < _SQRT_HALF
    mantissa = np.where(is_small, mantissa * 2.0, mantissa)
    exponent = (exponent - is_small).astype(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.full_like(square, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        series = series * square + coefficient
    result: NDArray[np.float64] = exponent * _LN2 + 2.0 * ratio * series
    return result
