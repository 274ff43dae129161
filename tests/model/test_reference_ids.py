"""Greedy output of the default model equals that of transformers in float32 token for token, up to near ties."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

# Executor -> (distance of the two best logits that ends a comparison, bound of the difference in log probability, cases
# that may end early). Torch computes in float32; the native operators round activations to 15 bits.
EXACTNESS = {"torch": (1e-4, 1e-4, 2), "native": (1e-2, 2e-2, 6)}
QUICK_CASES = ("short", "chat-capital", "chat-turns", "chinese", "emoji", "python-code")


def assert_equal_up_to_ties(cases, results, *, backend, num_tokens=64):
    """Compare each case up to its first near tie."""
    tie, tolerance, max_ended_by_tie = EXACTNESS[backend]
    num_ended = 0
    for case in cases:
        result = results[case.name]
        num_comparable = case.num_comparable(num_tokens, tie=tie)
        num_ended += num_comparable < num_tokens
        assert len(result.token_ids) == num_tokens
        assert result.token_ids[:num_comparable] == case.output_token_ids[:num_comparable], case.name
        for step in range(num_comparable):
            assert result.logprobs[step] == pytest.approx(case.logprobs[step], abs=tolerance), (case.name, step)
    assert num_ended <= max_ended_by_tie


def test_the_reference_is_what_was_asked_for(cases):
    assert len(cases) == 20
    assert all(len(case.output_token_ids) == len(case.margins) == 64 for case in cases.values())
    assert max(len(case.prompt_token_ids) for case in cases.values()) == 2000
    assert sum(case.num_comparable(64, tie=1e-4) < 64 for case in cases.values()) <= 2


def test_known_prompt(cases):
    """Rendered prompt and answer to the question in the README, as known from elsewhere."""
    case = cases["chat-capital"]
    assert case.prompt_token_ids[:10] == [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365]
    assert case.output_token_ids[:8] == [504, 3575, 282, 4649, 314, 7042, 30, 2]


def test_short_prompts_in_one_batch(cases, engines):
    chosen = [cases[name] for name in QUICK_CASES]
    results = engines.run(engines.make(), chosen)
    assert_equal_up_to_ties(chosen, results, backend=engines.backend)


@pytest.mark.timeout(180)
def test_a_prompt_of_2000_tokens(cases, engines):
    chosen = [cases["long-text"]]
    results = engines.run(engines.make(), chosen, num_tokens=8)
    assert_equal_up_to_ties(chosen, results, backend=engines.backend, num_tokens=8)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("batch", [True, False])
def test_all_prompts(cases, engines, batch):
    chosen = list(cases.values())
    results = engines.run(engines.make(), chosen, batch=batch)
    assert_equal_up_to_ties(chosen, results, backend=engines.backend)
