"""The chain penalties -> truncation -> draw gives what the host's sampler gives for the same requests."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from deepinfer.sampling.row import SamplingRow
from deepinfer.sampling.sampler import Sampler
from deepinfer.sampling_params import SamplingParams
from deepinfer_kernels import sample_gumbel, sample_logprobs, sample_penalties, sample_truncate
from deepinfer_kernels.testing.generators import make_normal

VOCAB_SIZE = 211


def make_rows(num_rows, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(num_rows):
        params = SamplingParams(
            temperature=rng.choice([0.0, 0.5, 1.0, 1.7]),
            top_k=rng.choice([-1, 1, 7, 100]),
            top_p=rng.choice([1.0, 0.9, 0.4]),
            min_p=rng.choice([0.0, 0.05, 0.5]),
            repetition_penalty=rng.choice([1.0, 1.3]),
            frequency_penalty=rng.choice([0.0, 0.4]),
            presence_penalty=rng.choice([0.0, -0.6]),
            logit_bias={rng.randrange(VOCAB_SIZE): rng.uniform(-5, 5) for _ in range(rng.randrange(3))},
            bad_words_token_ids=tuple((rng.randrange(VOCAB_SIZE),) for _ in range(rng.randrange(3))),
            seed=rng.getrandbits(64),
            logprobs=0,
        )
        token_ids = [rng.randrange(VOCAB_SIZE) for _ in range(rng.randrange(1, 40))]
        rows.append(SamplingRow(params, token_ids, rng.randrange(1, len(token_ids) + 1)))
    return rows


def make_entries(rows):
    """One entry for each (row, token) that has a penalty or a bias, as `sample_penalties` takes them."""
    entries = []
    for index, row in enumerate(rows):
        params, prompt = row.params, row.token_ids[: row.num_prompt_tokens]
        output = row.token_ids[row.num_prompt_tokens :]
        biases = dict(params.logit_bias) | {word[0]: -np.inf for word in params.bad_words_token_ids}
        seen = {*prompt, *output} if params.has_penalties else set()
        for token_id in sorted(seen | set(biases)):
            count = output.count(token_id) if token_id in seen else -1
            entries.append((index, token_id, count, biases.get(token_id, 0.0)))
    columns = list(zip(*entries, strict=True)) or [[], [], [], []]
    indices = [torch.tensor(column, dtype=torch.int32) for column in columns[:3]]
    strengths = [
        torch.tensor([getattr(row.params, f"{name}_penalty") for row in rows], dtype=torch.float32)
        for name in ("repetition", "frequency", "presence")
    ]
    return [*indices, torch.tensor(columns[3], dtype=torch.float32), *strengths]


@pytest.mark.parametrize(("suffix", "num_rows"), [("_ref", 300), ("", 12)], ids=["reference", "kernel"])
def test_tokens_and_logprobs_equal_the_host(suffix, num_rows):
    def get(module):
        return getattr(module, module.__name__.rpartition(".")[2] + suffix)

    rows = make_rows(num_rows, seed=num_rows)
    raw = make_normal(num_rows, VOCAB_SIZE, dtype=torch.float32, seed=5, scale=2.0)
    expected = Sampler(VOCAB_SIZE).sample(raw.numpy(), rows)
    assert expected.errors == {}

    def column(name, dtype):
        return torch.tensor([getattr(row.params, name) for row in rows], dtype=dtype)

    logits, temperature = raw.clone(), column("temperature", torch.float64)
    get(sample_penalties)(logits, *make_entries(rows))
    top_k, top_p, min_p = (
        column(n, d) for n, d in (("top_k", torch.int32), ("top_p", torch.float64), ("min_p", torch.float64))
    )
    get(sample_truncate)(logits, temperature, top_k, top_p, min_p)
    seeds = torch.from_numpy(np.array([row.params.seed for row in rows], dtype=np.uint64).view(np.int64))
    token_ids = get(sample_gumbel)(logits, temperature, seeds, torch.tensor([row.position for row in rows]))
    assert token_ids.tolist() == expected.token_ids

    logprobs, ranks = get(sample_logprobs)(raw, token_ids)
    assert ranks.tolist() == [entry.rank for entry in expected.logprobs]
    np.testing.assert_allclose(logprobs.numpy(), [entry.logprob for entry in expected.logprobs], rtol=0, atol=5e-6)
