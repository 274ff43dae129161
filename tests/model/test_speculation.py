"""Speculation does not change what the default model says, and takes fewer steps where text is copied."""

from __future__ import annotations

import time

import pytest

from deepinfer.config import SpeculativeConfig
from deepinfer.sampling_params import SamplingParams
from deepinfer.speculative import make_speculator
from deepinfer.testing.foreseen_drafts import ForeseenDrafts

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

NAMES = ("chat-capital", "rust-code", "chinese")
NUM_TOKENS = 24
OPTIONS = {
    "greedy": {"temperature": 0.0},
    "seeded": {"temperature": 0.7, "seed": 11, "top_p": 0.95},
    "logprobs": {"temperature": 1.0, "seed": 12, "logprobs": 1, "presence_penalty": 0.3},
}


def serve(engines, cases, *, drafts=None, **options):
    core = engines.make(drafts=drafts, **options)
    results = {}
    for name in NAMES:
        for kind, fields in OPTIONS.items():
            params = SamplingParams(**{"max_tokens": NUM_TOKENS, "ignore_eos": True, **fields})
            request = core.rules.make_request(
                f"{name} {kind}", cases[name].prompt_token_ids, params, arrival_time=time.monotonic()
            )
            core.add_request(request)
            results[request.request_id] = ([], [])
    num_accepted = num_preemptions = 0
    while core.has_work:
        step = core.step()
        if step.stats is not None:
            num_accepted += step.stats.num_accepted_tokens
            num_preemptions += step.stats.num_preemptions
        for output in step.outputs:
            assert output.error_message is None
            results[output.request_id][0].extend(output.new_token_ids)
            results[output.request_id][1].extend(output.logprobs or [])
    return results, num_accepted, num_preemptions


@pytest.fixture(scope="module")
def expected(engines, cases):
    if engines.backend != "native":
        pytest.skip("torch's results depend on the batch: equality is promised by the native operators")
    return serve(engines, cases)[0]


@pytest.mark.parametrize("kind", ["right", "mixed"])
def test_foreseen_drafts(engines, cases, expected, kind):
    foreseen = {name: tokens for name, (tokens, _) in expected.items()}
    drafts = ForeseenDrafts(foreseen, kind, vocab_size=49152)
    results, num_accepted, _ = serve(engines, cases, drafts=drafts)
    assert results == expected
    assert num_accepted > 50


@pytest.mark.parametrize("num_draft_tokens", [5, None])
def test_copied_drafts(engines, cases, expected, num_draft_tokens):
    drafts = make_speculator(SpeculativeConfig(proposer="ngram", num_draft_tokens=num_draft_tokens))
    assert serve(engines, cases, drafts=drafts)[0] == expected


def test_preemption(engines, cases, expected):
    foreseen = {name: tokens for name, (tokens, _) in expected.items()}
    drafts = ForeseenDrafts(foreseen, "mixed", vocab_size=49152)
    results, _, num_preemptions = serve(engines, cases, drafts=drafts, cache=False, num_blocks=18, block_size=16)
    assert results == expected
    assert num_preemptions > 0
