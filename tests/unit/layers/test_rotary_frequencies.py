"""Rotary frequencies and tables against float64 formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from deepinfer.config import RopeScaling
from deepinfer.layers.rotary import RotaryTable
from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies
from deepinfer.testing import make_tiny_config

LLAMA3 = RopeScaling(
    kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192
)


def frequencies(scaling=None, *, head_dim=64, theta=500000.0):
    config = make_tiny_config("llama", head_dim=head_dim, rope_theta=theta, rope_scaling=scaling)
    return compute_inverse_frequencies(config)


def plain(head_dim=64, theta=500000.0):
    return np.array([theta ** (-2 * i / head_dim) for i in range(head_dim // 2)])


@pytest.mark.parametrize("head_dim", [2, 6, 64, 80, 128])
def test_plain(head_dim):
    result = frequencies(head_dim=head_dim)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, plain(head_dim), rtol=1e-6)


def test_linear():
    np.testing.assert_allclose(frequencies(RopeScaling(kind="linear", factor=4.0)), plain() / 4, rtol=1e-6)


def test_llama3_by_wavelength():
    expected = []
    for frequency in plain():
        wavelength = 2 * math.pi / frequency
        if wavelength < 8192 / 4.0:
            expected.append(frequency)
        elif wavelength > 8192 / 1.0:
            expected.append(frequency / 8)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            expected.append((1 - smooth) * frequency / 8 + smooth * frequency)
    result = frequencies(LLAMA3)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert result[0] == 1.0
    assert len(set((result / plain()).round(3).tolist())) > 3, "no frequency between the two regions was met"


def test_factors_of_a_file_replace_the_formula():
    factors = tuple(np.linspace(1, 8, 32).tolist())
    for kind in ("linear", "llama3"):
        result = frequencies(RopeScaling(kind=kind, frequency_factors=factors))
        np.testing.assert_allclose(result, plain() / np.array(factors), rtol=1e-6)


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match="yarn"):
        frequencies(RopeScaling(kind="yarn"))


def test_table():
    config = make_tiny_config("llama", head_dim=8)
    table = RotaryTable(config, num_positions=100, device=torch.device("cpu"))
    assert table.cos.shape == table.sin.shape == (100, 4)
    angles = np.outer(np.arange(100), plain(8, 10000.0))
    np.testing.assert_allclose(table.cos.numpy(), np.cos(angles), atol=1e-5)
    np.testing.assert_allclose(table.sin.numpy(), np.sin(angles), atol=1e-5)
