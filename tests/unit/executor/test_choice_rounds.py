"""Rows behind accepted drafts: what is chosen, when it ends, and that the distribution of tokens is the model's."""

import numpy as np
import pytest

from deepinfer.executor.choice_rounds import NOT_FINITE, ChoiceRounds, sample_from, take_best
from deepinfer.executor.request_states import RequestStates
from deepinfer.outputs import KnownRequestData, ModelRunnerOutput, NewRequestData, SchedulerOutput
from deepinfer.sampling import Sampler
from deepinfer.sampling_params import SamplingParams

VOCAB_SIZE = 8
PROMPT = [1, 2, 3]


def schedule(requests, eos=frozenset({0})):
    """`requests`: name -> (params, drafts). Each has one known row more than drafts."""
    states = RequestStates()
    new = [
        NewRequestData(name, PROMPT, len(PROMPT), params, eos, [0], len(PROMPT) - 1)
        for name, (params, _) in requests.items()
    ]
    return states.apply(
        SchedulerOutput(
            scheduled_new_requests=new,
            num_scheduled_tokens={name: 1 + len(drafts) for name, (_, drafts) in requests.items()},
            draft_token_ids={name: drafts for name, (_, drafts) in requests.items() if drafts},
        )
    )


def make_rounds(scheduled):
    ends = np.cumsum([item.num_tokens for item in scheduled]).tolist()
    return ChoiceRounds(list(zip(scheduled, ends, strict=True)))


def greedy(**options):
    return SamplingParams(**{"temperature": 0.0, "seed": 0} | options)


def one_hot(*best):
    logits = np.zeros((len(best), VOCAB_SIZE), np.float32)
    logits[np.arange(len(best)), best] = 5.0
    return logits


def test_rows_come_round_by_round():
    scheduled = schedule({"a": (greedy(), [5, 6]), "b": (greedy(), []), "c": (greedy(), [7])})
    rounds = make_rounds(scheduled)
    assert rounds.rows == [0, 3, 4, 1, 5, 2]
    output = ModelRunnerOutput()
    rounds.run(output, take_best([5, 4, 1, 6, 2, 3]))
    assert output.sampled_token_ids == {"a": [5, 6, 3], "b": [4], "c": [1]}
    assert [item.state.token_ids[3:] for item in scheduled] == [[5, 6, 3], [4], [1]]


def test_nothing_to_choose():
    rounds = ChoiceRounds([])
    assert rounds.rows == []
    output = ModelRunnerOutput()
    rounds.run(output, take_best([]))
    assert output == ModelRunnerOutput()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [4, 0]),
        ({"ignore_eos": True}, [4, 0, 6, 3]),
        ({"ignore_eos": True, "stop_token_ids": (4,)}, [4]),
        ({"ignore_eos": True, "golden_token_ids": (-1, 2)}, [4, 2]),
        ({"ignore_eos": True, "logit_bias": {6: -100.0}}, [4, 0, 1]),
        ({"min_tokens": 2}, [4, 1]),
        ({"ignore_eos": True, "bad_words_token_ids": ((0, 6),)}, [4, 0, 1]),
    ],
    ids=str,
)
def test_the_options_see_accepted_tokens_and_ends_end(options, expected):
    scheduled = schedule({"r": (greedy(logprobs=0, **options), [4, 0, 6])})
    logits = one_hot(4, 0, 6, 3)
    logits[:, 1] = 1.0  # the second best everywhere
    rounds, output = make_rounds(scheduled), ModelRunnerOutput()
    rounds.run(output, sample_from(Sampler(VOCAB_SIZE), logits[rounds.rows]))
    assert output.sampled_token_ids["r"] == expected
    assert [entry.token_id for entry in output.logprobs["r"]] == expected


def test_penalties_count_each_accepted_token_once():
    scheduled = schedule({"r": (greedy(frequency_penalty=2.0, ignore_eos=True), [4, 4, 4])})
    logits = np.zeros((4, VOCAB_SIZE), np.float32)
    logits[:, 4], logits[:, 5] = 4.5, 1.0  # 4 wins until it occurred twice
    rounds, output = make_rounds(scheduled), ModelRunnerOutput()
    rounds.run(output, sample_from(Sampler(VOCAB_SIZE), logits))
    assert output.sampled_token_ids["r"] == [4, 4, 5]


@pytest.mark.parametrize(
    "params", [greedy(), greedy(logprobs=1), SamplingParams(seed=3)], ids=["best", "full", "drawn"]
)
def test_a_row_that_is_not_finite_fails_only_where_it_is_the_first(params):
    for bad_row, expected, errors in ((0, {}, {"r": NOT_FINITE}), (1, {"r": [4]}, {}), (2, {"r": [4, 5]}, {})):
        scheduled = schedule({"r": (params, [4, 5])})
        logits = 20.0 * one_hot(4, 5, 6)
        logits[bad_row, 3] = np.nan
        rounds, output = make_rounds(scheduled), ModelRunnerOutput()
        if params.needs_full_logits:
            rounds.run(output, sample_from(Sampler(VOCAB_SIZE), logits))
        else:
            rounds.run(output, take_best([None if index == bad_row else 4 + index for index in range(3)]))
        assert output.sampled_token_ids == expected
        assert output.errors == errors


@pytest.mark.parametrize("draft", [1, 5])
def test_a_draft_is_accepted_with_its_probability_and_changes_no_distribution(draft):
    """For a draft without a distribution no coupling accepts more often than the model's probability of it."""
    num_draws, sampler = 1500, Sampler(VOCAB_SIZE)
    logits = np.log(np.array([[0.05, 0.5, 0.1, 0.05, 0.1, 0.08, 0.07, 0.05]] * 2, np.float32))
    expected = np.exp(logits[0].astype(np.float64))
    requests = {f"{seed}": (SamplingParams(seed=seed, ignore_eos=True), [draft]) for seed in range(num_draws)}
    rounds, output = make_rounds(schedule(requests)), ModelRunnerOutput()
    rounds.run(output, sample_from(sampler, np.repeat(logits[:1], len(rounds.rows), axis=0)))
    firsts = np.array([tokens[0] for tokens in output.sampled_token_ids.values()])
    counts = np.bincount(firsts, minlength=VOCAB_SIZE)
    chi_square = ((counts - num_draws * expected) ** 2 / (num_draws * expected)).sum()
    assert chi_square < 24.3  # 7 degrees of freedom: exceeded once in a thousand
    num_accepted = sum(len(tokens) == 2 for tokens in output.sampled_token_ids.values())
    assert num_accepted == counts[draft]
    plain = {name: (params, []) for name, (params, _) in requests.items()}
    without, output_without = make_rounds(schedule(plain)), ModelRunnerOutput()
    without.run(output_without, sample_from(sampler, np.repeat(logits[:1], num_draws, axis=0)))
    assert firsts.tolist() == [tokens[0] for tokens in output_without.sampled_token_ids.values()]


def test_assumed_tokens_that_did_not_come_drop_the_drafts():
    states = RequestStates()
    new = NewRequestData("r", PROMPT, 3, greedy(), frozenset(), [0], 2)
    states.apply(SchedulerOutput(scheduled_new_requests=[new], num_scheduled_tokens={"r": 1}))
    for assumed, rows in (([2, 3], [3, 7, 7]), ([3, 3], [3])):
        (item,) = states.apply(
            SchedulerOutput(
                scheduled_known_requests=[KnownRequestData("r", [], None)],
                num_scheduled_tokens={"r": 3},
                draft_token_ids={"r": [7, 7]},
                assumed_token_ids={"r": assumed},
            )
        )
        assert (item.start, item.row_token_ids, item.samples_token) == (2, rows, True)


def test_blocks_that_were_given_back_leave_the_table():
    states = RequestStates()
    new = NewRequestData("r", PROMPT, 3, greedy(), frozenset(), [4, 5, 6], 2)
    states.apply(SchedulerOutput(scheduled_new_requests=[new], num_scheduled_tokens={"r": 1}))
    for kept, expected in ((None, [4, 5, 6, 9]), (2, [4, 5, 9])):
        known = KnownRequestData("r", [9], 2, num_kept_blocks=kept)
        (item,) = states.apply(SchedulerOutput(scheduled_known_requests=[known], num_scheduled_tokens={"r": 1}))
        assert item.state.block_ids == expected
        item.state.block_ids[:] = [4, 5, 6]
