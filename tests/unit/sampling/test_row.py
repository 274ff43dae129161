"""What happens to logits before temperature."""

from collections import Counter

import numpy as np
import pytest

from deepinfer import SamplingParams
from deepinfer.sampling import SamplingRow

VOCAB = 30


def adjust(prompt, output, eos=(), **params):
    logits = np.linspace(-3, 3, VOCAB, dtype=np.float32)
    before = logits.copy()
    row = SamplingRow(SamplingParams(**params), [*prompt, *output], len(prompt), frozenset(eos))
    adjusted = row.adjust(logits)
    assert (logits == before).all(), "the caller's logits stay as they are"
    return logits, adjusted


@pytest.mark.parametrize("repetition", [1.0, 1.3, 0.5])
@pytest.mark.parametrize("frequency", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("presence", [0.0, 1.5, -1.0])
@pytest.mark.parametrize(("prompt", "output"), [([1], []), ([1, 1, 29], [29, 29, 5, 0]), ([2], [2] * 9)])
def test_penalties_follow_the_plain_formula(repetition, frequency, presence, prompt, output):
    logits, adjusted = adjust(
        prompt, output, repetition_penalty=repetition, frequency_penalty=frequency, presence_penalty=presence
    )
    counts = Counter(output)
    for token_id in range(VOCAB):
        value = float(logits[token_id])
        if token_id in prompt or token_id in output:
            value = value / repetition if value > 0 else value * repetition
        value -= frequency * counts[token_id] + presence * (counts[token_id] > 0)
        assert adjusted[token_id] == pytest.approx(value, rel=1e-5, abs=1e-6)


def test_history_grows_with_the_live_sequence():
    tokens = [1, 2]
    params = SamplingParams(frequency_penalty=0.5, repetition_penalty=1.2)
    row = SamplingRow(params, tokens, 2)
    logits = np.linspace(-3, 3, 200, dtype=np.float32)
    for token_id in [5, 5, 7, *range(150)]:
        grown = row.adjust(logits)
        fresh = SamplingRow(params, list(tokens), 2).adjust(logits)
        assert (grown == fresh).all()
        tokens.append(token_id)


def test_logit_bias_is_added_after_penalties():
    logits, adjusted = adjust([1], [4], logit_bias={4: 10.0, 6: -100.0}, presence_penalty=1.0)
    assert adjusted[4] == pytest.approx(logits[4] + 9.0, rel=1e-6)
    assert adjusted[6] == pytest.approx(logits[6] - 100.0, rel=1e-6)
    assert (np.delete(adjusted, [4, 6]) == np.delete(logits, [4, 6])).all()


@pytest.mark.parametrize("num_outputs", [0, 1, 2, 3])
def test_min_tokens_forbids_every_end(num_outputs):
    _, adjusted = adjust([1], [9] * num_outputs, eos=(0,), min_tokens=2, stop_token_ids=(3,))
    is_forbidden = num_outputs < 2
    assert np.isneginf(adjusted[[0, 3]]).tolist() == [is_forbidden] * 2
    assert np.isfinite(np.delete(adjusted, [0, 3])).all()


def test_min_tokens_leaves_eos_alone_when_it_ends_nothing():
    _, adjusted = adjust([1], [], eos=(0,), min_tokens=2, ignore_eos=True, stop_token_ids=(3,))
    assert np.isfinite(adjusted[0])
    assert np.isneginf(adjusted[3])


def test_bias_cannot_lift_a_ban():
    _, adjusted = adjust([1], [], eos=(0,), min_tokens=1, logit_bias={0: 100.0})
    assert np.isneginf(adjusted[0])


@pytest.mark.parametrize(
    ("tokens", "forbidden"), [([1, 2], [9]), ([1, 7], [8, 9]), ([7, 1], [9]), ([3, 4], [5, 9]), ([4], [9])]
)
def test_bad_words_forbid_the_token_that_would_complete_them(tokens, forbidden):
    _, adjusted = adjust(tokens, [], bad_words_token_ids=((9,), (7, 8), (3, 4, 5)))
    assert np.flatnonzero(np.isneginf(adjusted)).tolist() == forbidden


def test_plain_rows_are_not_copied():
    logits, adjusted = adjust([1], [2], temperature=0.5, top_p=0.5)
    assert adjusted is logits


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"temperature": 0.0}, True),
        ({"temperature": 0.0, "top_p": 0.5, "top_k": 3}, True),
        ({"temperature": 0.5}, False),
        ({"temperature": 0.0, "logprobs": 0}, False),
        ({"temperature": 0.0, "logit_bias": {1: 1.0}}, False),
        ({"temperature": 0.0, "min_tokens": 1}, False),
        ({"temperature": 0.0, "bad_words_token_ids": ((1,),)}, False),
        ({"temperature": 0.0, "presence_penalty": 0.1}, False),
        ({"temperature": 0.0, "prompt_logprobs": 1}, True),
    ],
)
def test_needs_only_argmax(params, expected):
    assert SamplingRow(SamplingParams(**params), [1], 1).needs_only_argmax is expected
