"""Drafts follow the text, the budget and the step times; configuration is checked."""

from array import array

import pytest

from deepinfer import ConfigError, SamplingParams, SpeculativeConfig
from deepinfer.cost import StepCost, StepLoad
from deepinfer.request import Request
from deepinfer.speculative import NgramProposer, Speculator, make_speculator

COST = StepCost(1.0, 0.0, 0.0, 0.2, 0.0)
PHRASE = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]


def make_request(name="r", prompt=(*PHRASE, *PHRASE[:4])):
    params = SamplingParams(temperature=0.0, max_tokens=100, seed=0)
    return Request(name, array("I", prompt), params, frozenset(), 0.0, 100)


def test_copies_what_followed():
    speculator = Speculator(NgramProposer(), 3)
    assert speculator.propose([make_request()], 99, COST) == {"r": [15, 16, 17]}


def test_follows_the_output():
    speculator = Speculator(NgramProposer(), 2)
    request = make_request(prompt=PHRASE)
    assert speculator.propose([request], 99, COST) == {}
    request.output_token_ids += [13, 14]
    speculator.observe_tokens(request, 2)
    assert speculator.propose([request], 99, COST) == {"r": [15, 16]}


def test_a_fixed_length_is_cut_by_the_room():
    speculator = Speculator(NgramProposer(), 5)
    requests = [make_request("a"), make_request("b")]
    assert speculator.propose(requests, 7, COST) == {"a": [15, 16, 17, 18, 19], "b": [15, 16]}
    assert speculator.propose(requests, 0, COST) == {}


def test_wrong_drafts_lose_their_confidence_and_right_ones_win_it():
    proposer = NgramProposer()
    wrong, right = make_request("wrong", prompt=[5, 6] * 3), make_request("right", prompt=PHRASE * 2)
    before = [proposer.propose(request, 4).survivals[0] for request in (wrong, right)]
    for step in range(60):
        for request, token_id in ((wrong, 100 + step), (right, PHRASE[step % 10])):
            proposer.propose(request, 4)
            request.output_token_ids.append(token_id)
            proposer.observe(request, 1)
        wrong.output_token_ids += [5, 6]
    after = [proposer.propose(request, 4).survivals[0] for request in (wrong, right)]
    assert after[0] < 0.2 < before[0]
    assert after[1] > 0.97 >= before[1]


def test_measured_steps_decide():
    request = make_request(prompt=PHRASE * 4)
    for seconds_per_row, expects_drafts in ((0.0, True), (1.0, False)):
        speculator = Speculator(NgramProposer(), None)
        for num_rows in (1, 2, 4, 8, 16):
            load = StepLoad(num_decode_rows=num_rows)
            speculator.observe_step(load, 1, 1.0 + seconds_per_row * (num_rows - 1))
        assert bool(speculator.propose([request], 99, COST)) is expects_drafts


def test_where_nothing_is_worth_it_a_trial_is_made_now_and_then():
    speculator = Speculator(NgramProposer(), None)
    for num_rows in (1, 2, 4, 8, 16):
        speculator.observe_step(StepLoad(num_decode_rows=num_rows), 1, float(num_rows))
    requests = [make_request(f"r{number}", prompt=PHRASE * 4) for number in range(8)]
    counts = [sum(map(len, speculator.propose(requests, 99, COST).values())) for _ in range(129)]
    assert sum(count > 0 for count in counts) == 2
    assert max(counts) == 3


def test_steps_with_prefill_teach_nothing():
    speculator = Speculator(NgramProposer(), None)
    speculator.observe_step(StepLoad(num_prefill_tokens=5, num_decode_rows=1), 1, 1.0)
    speculator.observe_step(StepLoad(), 0, 1.0)
    assert not speculator.curve.is_measured


def test_forget():
    proposer = NgramProposer()
    speculator = Speculator(proposer, 3)
    request = make_request()
    speculator.forget(request)
    speculator.propose([request], 99, COST)
    speculator.forget(request)
    assert not proposer._states
    speculator.observe_tokens(request, 1)


def test_configuration():
    assert make_speculator(SpeculativeConfig()) is None
    assert make_speculator(SpeculativeConfig(proposer="ngram")).chooses_lengths
    assert make_speculator(SpeculativeConfig(proposer="ngram", num_draft_tokens=4)).max_draft_tokens == 4
    for wrong in ({"proposer": "magic"}, {"num_draft_tokens": 0}, {"num_draft_tokens": 16}, {"num_draft_tokens": 1.5}):
        with pytest.raises(ConfigError):
            SpeculativeConfig(**wrong)
