"""A row has the same bits whatever stands beside it, however a prompt is cut, whoever computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepinfer.testing.tiny_models import make_random_tensors, make_tiny_config

NUM_TOKENS = 40


@pytest.fixture(params=["q4_1", "q8_0", "q6_k", "f16"])
def model(request):
    config = make_tiny_config("llama", hidden_size=256, intermediate_size=256, num_qo_heads=24, num_kv_heads=8)
    return config, make_random_tensors(config, request.param)


def random_ids(config, count, seed):
    return np.random.default_rng(seed).integers(0, config.vocab_size, count).tolist()


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 13, 16, 17, 40])
def test_chunks(make_driver, model, chunk):
    token_ids = random_ids(model[0], NUM_TOKENS, 1)
    whole = make_driver(*model).prefill(0, token_ids, NUM_TOKENS)
    assert np.array_equal(make_driver(*model).prefill(0, token_ids, chunk), whole)


@pytest.mark.parametrize("batch", [2, 3, 8, 32])
def test_batches(make_driver, model, batch):
    sequences = [random_ids(model[0], 12, seed) for seed in range(batch)]
    together = make_driver(*model, num_sequences=batch, num_threads=2)
    together.step({index: ids[:-3] for index, ids in enumerate(sequences)})
    rows = [together.step({index: [ids[step]] for index, ids in enumerate(sequences)}) for step in (-3, -2, -1)]
    for index in (0, batch - 1):
        alone = make_driver(*model)
        alone.step({0: sequences[index][:-3]})
        for step, logits in zip((-3, -2, -1), rows, strict=True):
            assert np.array_equal(alone.step({0: [sequences[index][step]]})[0], logits[index])


@pytest.mark.parametrize("forms", [{"activations": "fast"}, {"kv_storage": "int8"}])
def test_forms_of_fewer_bits(make_driver, model, forms):
    token_ids = random_ids(model[0], NUM_TOKENS, 3)
    expected = make_driver(*model, **forms).prefill(0, token_ids, NUM_TOKENS)
    assert np.array_equal(make_driver(*model, num_threads=2, **forms).prefill(0, token_ids, 3), expected)
    assert np.array_equal(make_driver(*model, instruction_set="portable", **forms).prefill(0, token_ids, 9), expected)


def test_threads_and_instruction_sets(make_driver, model):
    token_ids = random_ids(model[0], NUM_TOKENS, 2)
    expected = make_driver(*model).prefill(0, token_ids, 7)
    assert np.array_equal(make_driver(*model, num_threads=2).prefill(0, token_ids, 7), expected)
    assert np.array_equal(make_driver(*model, num_threads=3).prefill(0, token_ids, 7), expected)
    assert np.array_equal(make_driver(*model, instruction_set="portable").prefill(0, token_ids, 7), expected)


@pytest.mark.parametrize("instruction_set", ["auto", "portable"])
def test_long_context(make_driver, instruction_set):
    """Decode spreads the chunks of 256 positions over threads, prefill walks through them."""
    config = make_tiny_config("llama", hidden_size=64, intermediate_size=64, num_qo_heads=6)
    tensors = make_random_tensors(config, "q8_0")
    token_ids = random_ids(config, 600, 3)
    whole = make_driver(config, tensors).prefill(0, token_ids, 600)
    driver = make_driver(config, tensors, num_threads=2, instruction_set=instruction_set)
    driver.prefill(0, token_ids[:580], 97)
    assert np.array_equal(driver.prefill(0, token_ids[580:], 1), whole[580:])


@given(st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_any_mix_of_prefill_and_decode(make_driver, data):
    config = make_tiny_config("mistral", hidden_size=64, intermediate_size=64)
    tensors = make_random_tensors(config, "q4_1")
    sequences = [random_ids(config, data.draw(st.integers(1, 60)), seed) for seed in range(3)]
    expected = [make_driver(config, tensors).prefill(0, ids, len(ids)) for ids in sequences]
    driver = make_driver(config, tensors, num_sequences=3, num_threads=2)
    got = [[], [], []]
    while any(len(done) < len(ids) for done, ids in zip(got, sequences, strict=True)):
        rows = {}
        for index, ids in enumerate(sequences):
            count = data.draw(st.integers(0, len(ids) - len(got[index])))
            if count:
                rows[index] = ids[len(got[index]) : len(got[index]) + count]
        if not rows:
            continue
        logits = driver.step(rows)
        for index, tokens in rows.items():
            got[index].extend(logits[: len(tokens)])
            logits = logits[len(tokens) :]
    for done, whole in zip(got, expected, strict=True):
        assert np.array_equal(np.array(done), whole)
