import json
import random
import re

import numpy as np
import pytest

from deepinfer import ConfigError, GrammarSpec, RequestError
from deepinfer.structured import GrammarCompiler, Vocabulary

EOS, THINK_END = 256, 257
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def allowed(matcher, output):
    mask = matcher.compute_mask(output)
    if mask is None:
        return None
    return np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")[:300]).tolist()


def walk(grammar, rng, max_tokens=400):
    """A random output that the grammar allows, ended as soon as it may end, after 20 tokens."""
    matcher, output = grammar.make_matcher(), []
    while len(output) < max_tokens:
        ids = allowed(matcher, output)
        if EOS in ids and (len(output) > 20 or ids == [EOS]):
            return output
        choices = [token_id for token_id in ids if token_id != EOS and (token_id >= 258 or 32 <= token_id < 127)]
        output.append(rng.choice(choices or [token_id for token_id in ids if token_id != EOS]))
    raise AssertionError("no end was allowed")


@pytest.mark.parametrize("seed", range(8))
def test_random_outputs_have_the_schema(compiler, vocabulary, seed):
    grammar = compiler.compile(GrammarSpec("json_schema", json.dumps(PERSON)))
    value = json.loads(vocabulary.decode(walk(grammar, random.Random(seed))))
    assert set(value) == {"name", "age"}
    assert isinstance(value["name"], str)
    assert isinstance(value["age"], int)
    assert value["age"] >= 0


@pytest.mark.parametrize(
    ("spec", "pattern"),
    [
        (GrammarSpec("regex", "[a-c]{2,4}-[0-9]+"), r"[a-c]{2,4}-[0-9]+"),
        (GrammarSpec("choice", choices=("yes", "no (really?)", "nö")), r"yes|no \(really\?\)|nö"),
        (GrammarSpec("grammar", 'start: "yes" | "no" /[0-9]/'), r"yes|no[0-9]"),
        (GrammarSpec("grammar", 'root ::= "yes" | "no" [0-9]'), r"yes|no[0-9]"),
    ],
)
def test_other_forms(compiler, vocabulary, spec, pattern):
    for seed in range(6):
        text = vocabulary.decode(walk(compiler.compile(spec), random.Random(seed)))
        assert re.fullmatch(pattern, text)


def test_an_object_is_an_object(compiler):
    ids = allowed(compiler.compile(GrammarSpec("json_object")).make_matcher(), [])
    assert set(ids) <= {ord("{"), 258}


def test_blanks_between_tokens_are_bounded(compiler):
    matcher = compiler.compile(GrammarSpec("json_schema", json.dumps(PERSON))).make_matcher()
    output = [ord("{")]
    while {ord(" "), ord("\n")} & set(allowed(matcher, output)):
        output.append(ord(" "))
        assert len(output) < 40
    assert len(output) > 1


def test_ids_beyond_the_tokens_are_never_allowed(compiler):
    matcher = compiler.compile(GrammarSpec("regex", "(.|\n)*")).make_matcher()
    ids = allowed(matcher, [])
    assert ord("a") in ids
    assert EOS in ids
    assert THINK_END not in ids
    assert max(ids) < 258 + 11


def test_only_the_end_is_allowed_when_the_form_is_complete(compiler):
    matcher = compiler.compile(GrammarSpec("choice", choices=("yes", "no"))).make_matcher()
    assert allowed(matcher, list(b"yes")) == [EOS]
    assert allowed(matcher, [*b"yes", EOS, EOS]) == [EOS]
    assert allowed(matcher, list(b"ye")) == [ord("s")]


def test_the_output_is_free_until_the_trigger(compiler):
    spec = GrammarSpec("choice", choices=("yes", "no"), start_after_token_ids=(THINK_END,))
    matcher = compiler.compile(spec).make_matcher()
    thought = list(b"let me see")
    for length in range(len(thought) + 1):
        assert matcher.compute_mask(thought[:length]) is None
    assert set(allowed(matcher, [*thought, THINK_END])) == {ord("y"), ord("n"), 264, 265}
    assert allowed(matcher, [*thought, THINK_END, *b"ye"]) == [ord("s")]


def test_a_trigger_of_several_tokens_with_an_overlapping_start(compiler):
    spec = GrammarSpec("choice", choices=("x",), start_after_token_ids=(1, 1, 2))
    matcher = compiler.compile(spec).make_matcher()
    for output in ([1], [1, 1], [1, 1, 1]):
        assert matcher.compute_mask(output) is None
    assert allowed(matcher, [1, 1, 1, 2]) == [ord("x")]


def test_a_fresh_matcher_catches_up_and_a_cut_output_is_taken_back(compiler):
    spec = GrammarSpec("json_schema", json.dumps(PERSON), start_after_token_ids=(THINK_END,))
    grammar = compiler.compile(spec)
    output = [1, 2, THINK_END, *b'{"name": "ab", "age": 12}']
    matcher = grammar.make_matcher()
    masks = [matcher.compute_mask(output[:length]) for length in range(len(output) + 1)]
    for length in (len(output), 10, 4, 3, 2, 0, 7, len(output)):
        assert matcher.compute_mask(output[:length]) == masks[length]
        assert grammar.make_matcher().compute_mask(output[:length]) == masks[length]


def test_an_output_that_left_its_form_is_an_error_of_the_request(compiler):
    matcher = compiler.compile(GrammarSpec("choice", choices=("yes",))).make_matcher()
    with pytest.raises(RequestError, match="left its grammar"):
        matcher.compute_mask(list(b"no"))


@pytest.mark.parametrize(
    ("kind", "source", "named"),
    [
        ("json_schema", '{"type": "objekt"}', "objekt"),
        ("json_schema", "[1", "not valid JSON"),
        ("regex", "a{1000}{1000}", "repeats more than 50,000 times"),
        ("regex", "[^\\s\\S]", "allows no output"),
        ("regex", "a{3}(b", "unclosed group"),
        ("regex", r"a\b", "lookarounds"),
        ("grammar", "start: foo", "foo"),
        ("grammar", "root ::= (", "grammar cannot be used"),
    ],
)
def test_what_is_not_covered_is_named(compiler, kind, source, named):
    with pytest.raises(RequestError, match=re.escape(named)) as caught:
        compiler.compile(GrammarSpec(kind, source))
    assert caught.value.param == kind


@pytest.mark.parametrize(
    ("spec", "param"),
    [
        ({"kind": "poem"}, "kind"),
        ({"kind": "choice"}, "choice"),
        ({"kind": "choice", "choices": ("a", "")}, "choice[1]"),
        ({"kind": "choice", "choices": ("a",) * 10_001}, "choice"),
        ({"kind": "regex", "source": "a" * 262_145}, "regex"),
        ({"kind": "regex"}, "regex"),
        ({"kind": "json_schema"}, "json_schema"),
    ],
)
def test_specifications_that_say_nothing(spec, param):
    with pytest.raises(RequestError) as caught:
        GrammarSpec(**spec)
    assert caught.value.param == param


def test_equal_specifications_are_compiled_once_and_memory_is_bounded(compiler):
    first = compiler.compile(GrammarSpec("regex", "a+"))
    assert compiler.compile(GrammarSpec("regex", "a+")) is first
    for number in range(300):
        compiler.compile(GrammarSpec("regex", f"b{{{number + 1}}}"))
    assert len(compiler._grammars) == 256


def test_a_model_without_an_end_token_is_refused():
    nothing = Vocabulary(tokens=[b"a"], special_token_ids=[], eos_token_ids=[], encode=lambda text: [], size=1)
    with pytest.raises(ConfigError, match="end-of-sequence"):
        GrammarCompiler(lambda: nothing).compile(GrammarSpec("regex", "a"))


def test_an_output_that_does_not_begin_with_the_opening_has_the_form_from_the_start(compiler):
    spec = GrammarSpec("choice", choices=("yes", "no"), start_after_token_ids=(THINK_END,), opening_token_id=7)
    matcher = compiler.compile(spec).make_matcher()
    first = {7, ord("y"), ord("n"), 264, 265}
    assert set(allowed(matcher, [])) == first
    assert allowed(matcher, list(b"ye")) == [ord("s")]
    assert set(allowed(matcher, [])) == first
    assert matcher.compute_mask([7]) is None
    assert matcher.compute_mask([7, *b"hm"]) is None
    assert set(allowed(matcher, [7, *b"hm", THINK_END])) == first - {7}
    assert allowed(matcher, [7, *b"hm", THINK_END, *b"no"]) == [EOS]
    assert matcher.compute_mask([7]) is None
    assert set(allowed(matcher, [])) == first
    assert allowed(matcher, list(b"n")) == [ord("o")]
