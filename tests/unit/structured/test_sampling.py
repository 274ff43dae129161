"""The form of an output wins over everything else that moves logits."""

import numpy as np
import pytest

from deepinfer import GrammarSpec, SamplingParams
from deepinfer.sampling import Sampler, SamplingRow

VOCAB = 300
EOS = 256


def run(grammar, logits_of, *, count=12, prompt=(1,), **params):
    tokens = list(prompt)
    options = {"temperature": 0.0, "seed": 3, **params}
    row = SamplingRow(SamplingParams(**options), tokens, len(prompt), frozenset({EOS}), matcher=grammar.make_matcher())
    sampler = Sampler(VOCAB)
    for _ in range(count):
        result = sampler.sample(logits_of(tokens)[None], [row])
        if result.errors:
            return tokens[len(prompt) :], result.errors[0]
        tokens += result.token_ids
        if tokens[-1] == EOS:
            break
    return tokens[len(prompt) :], None


def noisy(tokens):
    return (np.random.default_rng(len(tokens)).standard_normal(VOCAB) * 3).astype(np.float32)


@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.5}, {"top_k": 1, "temperature": 2.0}]
)
def test_every_way_of_choosing_keeps_the_form(compiler, vocabulary, params):
    grammar = compiler.compile(GrammarSpec("choice", choices=("yes", "no")))
    tokens, error = run(grammar, noisy, **params)
    assert error is None
    assert tokens[-1] == EOS
    assert vocabulary.decode(tokens) in ("yes", "no")


def test_bias_and_penalties_cannot_leave_the_form(compiler, vocabulary):
    grammar = compiler.compile(GrammarSpec("regex", "aaaa"))
    bias = {ord("z"): 100.0, ord("a"): -100.0}
    tokens, error = run(grammar, noisy, logit_bias=bias, presence_penalty=2.0, repetition_penalty=5.0)
    assert error is None
    assert vocabulary.decode(tokens) == "aaaa"


def test_a_complete_form_ends_before_min_tokens(compiler, vocabulary):
    grammar = compiler.compile(GrammarSpec("regex", "a{2,30}"))
    tokens, error = run(grammar, noisy, min_tokens=40, max_tokens=60, count=60)
    assert error is None
    assert vocabulary.decode(tokens) == "a" * 30
    assert tokens[-1] == EOS


def test_a_form_without_a_possible_token_fails_the_row(compiler):
    grammar = compiler.compile(GrammarSpec("choice", choices=("y",)))
    tokens, error = run(grammar, noisy, bad_words_token_ids=((ord("y"),),))
    assert tokens == []
    assert "grammar together forbid every token" in error


def test_a_golden_token_outside_the_form_fails_the_row_with_the_next_one(compiler):
    grammar = compiler.compile(GrammarSpec("choice", choices=("yes",)))
    tokens, error = run(grammar, noisy, golden_token_ids=(ord("q"),))
    assert tokens == [ord("q")]
    assert "left its grammar" in error


def test_the_form_starts_after_a_forced_end_of_thinking(compiler, vocabulary):
    grammar = compiler.compile(GrammarSpec("choice", choices=("yes", "no"), start_after_token_ids=(257,)))
    tokens, error = run(grammar, noisy, max_thinking_tokens=4, thinking_end_token_id=257, count=20)
    assert error is None
    assert tokens.index(257) == 4
    assert tokens.count(257) == 1
    assert vocabulary.decode(tokens[5:]) in ("yes", "no")
