import numpy as np
import pytest

from deepinfer import InvalidSamplingParamsError, SamplingParams
from deepinfer.sampling import Sampler, SamplingRow

VOCAB = 20


def generate(count, *, best=9, prompt=(1, 2), **params):
    """Tokens of a model that always likes `best` most."""
    logits = np.zeros((1, VOCAB), np.float32)
    logits[0, best] = 5.0
    tokens = list(prompt)
    row = SamplingRow(SamplingParams(temperature=0.0, **params), tokens, len(prompt))
    sampler = Sampler(VOCAB)
    for _ in range(count):
        tokens += sampler.sample(logits, [row]).token_ids
    return tokens[len(prompt) :]


def test_golden_tokens_replace_the_choice_and_minus_one_leaves_it_free():
    assert generate(5, golden_token_ids=(4, -1, 0)) == [4, 9, 0, 9, 9]


def test_golden_tokens_win_over_bans():
    assert generate(2, golden_token_ids=(4,), bad_words_token_ids=((4,),)) == [4, 9]


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_thinking_ends_at_its_budget_with_exactly_one_token(budget):
    assert generate(6, max_thinking_tokens=budget, thinking_end_token_id=7) == [9] * budget + [7] + [9] * (5 - budget)


def test_thinking_that_ended_by_itself_is_left_alone():
    assert generate(6, max_thinking_tokens=3, thinking_end_token_id=7, golden_token_ids=(-1, 7)) == [9, 7, 9, 9, 9, 9]


def test_an_end_in_the_prompt_does_not_count():
    assert generate(3, prompt=(7, 7), max_thinking_tokens=1, thinking_end_token_id=7) == [9, 7, 9]


def test_a_request_resumed_after_preemption_goes_on_as_before():
    tokens = [1, 2, 9, 9, 9, 7, 9]
    row = SamplingRow(SamplingParams(temperature=0.0, max_thinking_tokens=3, thinking_end_token_id=7), tokens, 2)
    assert row.forced_token_id is None


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"golden_token_ids": (-2,)}, "golden_token_ids"),
        ({"max_thinking_tokens": -1, "thinking_end_token_id": 1}, "max_thinking_tokens"),
        ({"max_thinking_tokens": 5}, "thinking_end_token_id"),
        ({"logprobs_mode": "cooked"}, "logprobs_mode"),
    ],
)
def test_values_out_of_range(params, name):
    with pytest.raises(InvalidSamplingParamsError, match=name) as caught:
        SamplingParams(**params)
    assert caught.value.param == name


def test_a_budget_for_outputs_that_begin_to_think_leaves_the_others_alone():
    params = {"max_thinking_tokens": 2, "thinking_end_token_id": 7, "thinking_start_token_id": 4}
    assert generate(5, **params) == [9] * 5
    assert generate(5, golden_token_ids=(4,), **params) == [4, 9, 7, 9, 9]
    params["max_thinking_tokens"] = 0
    assert generate(5, golden_token_ids=(4,), **params) == [4, 7, 9, 9, 9]
    assert generate(3, **params) == [9] * 3
