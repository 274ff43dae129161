"""Angular frequencies of rotary positions. Numpy only: every executor takes them from here."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepinfer.config import ModelConfig, RopeScaling


def compute_inverse_frequencies(config: ModelConfig) -> NDArray[np.float32]:
    """Radians per position of each rotation pair: float32 [head_dim / 2], theta^(-2i / head_dim), scaled.

    Raises:
        ValueError: the kind of scaling is not known.
    """
    exponents = np.arange(0, config.head_dim, 2, dtype=np.int64).astype(np.float32) / np.float32(config.head_dim)
    frequencies: NDArray[np.float32] = np.float32(1.0) / np.power(np.float32(config.rope_theta), exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    if scaling.frequency_factors:
        frequencies = np.divide(frequencies, np.asarray(scaling.frequency_factors, np.float32))
    if scaling.kind == "linear":
        return np.divide(frequencies, np.float32(scaling.factor))
    if scaling.kind == "llama3":
        return frequencies if scaling.frequency_factors else _stretch_llama3(frequencies, scaling)
    raise ValueError(f"unknown rope scaling {scaling.kind!r}")


def _stretch_llama3(frequencies: NDArray[np.float32], scaling: RopeScaling) -> NDArray[np.float32]:
    """Llama 3.1: long waves are slowed by `factor`, short ones stay, those between are blended linearly.

    With w = original context / wavelength: w <= low is long, w >= high is short, between the weight of the unscaled
    frequency is (w - low) / (high - low).
    """
    waves = scaling.original_max_position_embeddings * frequencies / (2 * math.pi)
    keep = (waves - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    keep = np.clip(keep, 0.0, 1.0)
    stretched: NDArray[np.float32] = (1.0 - keep) * frequencies / np.float32(scaling.factor) + keep * frequencies
    return stretched
