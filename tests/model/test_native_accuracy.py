"""How far the native operators are from the same weights in double precision, over a text in the public domain.

Root mean square of the error of the logits, their divergence, and agreement of the best token, as docs/performance.md
reports them. The bounds leave a factor of about two to what was measured.
"""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from deepinfer.loader import open_checkpoint
from deepinfer.testing.reference_model import compute_reference_logits

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

# For each form of activations and cache: root mean square of the error, divergence, share of equal best tokens.
BOUNDS = {
    ("exact", "float16"): (0.008, 5e-6, 0.995),
    ("exact", "int8"): (0.4, 1.2e-2, 0.94),
    ("fast", "float16"): (0.6, 2.5e-2, 0.92),
}
BLOCK_SIZE = 64


def compute_native_logits(checkpoint, token_ids, activations, kv_storage):
    """Logits [T, V] of one prompt, chunk by chunk."""
    from deepinfer.executor.native_weights import load_native_weights

    num_blocks = -(-len(token_ids) // BLOCK_SIZE)
    weights = load_native_weights(checkpoint, num_threads=2)
    runner = deepinfer_cpu.Runner(
        weights,
        num_blocks=num_blocks,
        block_size=BLOCK_SIZE,
        num_threads=2,
        activations=activations,
        kv_storage=kv_storage,
    )
    logits = np.empty((len(token_ids), checkpoint.config.vocab_size), np.float32)
    for start in range(0, len(token_ids), 128):
        part = token_ids[start : start + 128]
        runner.step(
            token_ids=array("I", part),
            row_starts=array("I", [0, len(part)]),
            first_positions=array("I", [start]),
            table_starts=array("I", [0, num_blocks]),
            block_ids=array("I", range(num_blocks)),
            logit_rows=array("I", range(len(part))),
            logits=logits[start : start + len(part)].reshape(-1),
        )
    return logits


def measure(got, expected):
    """RMS of the error, mean divergence of the two distributions, share of equal best tokens."""
    rms = np.sqrt(np.mean((got - expected) ** 2))
    divergences = [_divergence(right, left.astype(np.float64)) for right, left in zip(expected, got, strict=True)]
    return rms, np.mean(divergences), np.mean(got.argmax(axis=1) == expected.argmax(axis=1))


def _divergence(expected, got):
    log_expected, log_got = (row - row.max() for row in (expected, got))
    log_expected -= np.log(np.exp(log_expected).sum())
    log_got -= np.log(np.exp(log_got).sum())
    return np.sum(np.exp(log_expected) * (log_expected - log_got))


@pytest.fixture(scope="module")
def reference(cases, model_path):
    """Checkpoint, a long text, and its logits in double precision."""
    checkpoint = open_checkpoint(model_path)
    token_ids = cases["long-text"].prompt_token_ids
    return checkpoint, token_ids, compute_reference_logits(checkpoint.config, checkpoint.tensors, token_ids)


@pytest.mark.slow
@pytest.mark.parametrize("form", BOUNDS)
def test_distance_to_double_precision(reference, form, record_property):
    checkpoint, token_ids, expected = reference
    rms, divergence, agreement = measure(compute_native_logits(checkpoint, token_ids, *form), expected)
    for name, value in (("rms", rms), ("divergence", divergence), ("agreement", agreement)):
        record_property(name, float(value))
    max_rms, max_divergence, min_agreement = BOUNDS[form]
    assert rms < max_rms
    assert divergence < max_divergence
    assert agreement > min_agreement
