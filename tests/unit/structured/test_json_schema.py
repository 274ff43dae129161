"""Schemas that cannot become a grammar are refused where they are at fault; endless ones are found."""

import json

import llguidance
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepinfer.errors import GrammarError
from deepinfer.structured import GrammarSpec
from deepinfer.structured.json_schema import UNSUPPORTED_KEYWORDS, iterate_subschemas, read_json_schema
from deepinfer.structured.regex_size import compute_expansion
from deepinfer.structured.termination import check_termination

NODE = {"$ref": "#/$defs/n"}


@pytest.mark.parametrize("keyword", sorted(UNSUPPORTED_KEYWORDS))
def test_the_library_refuses_each_listed_keyword_too(keyword, compiler):
    schema = {"type": ["object", "array"], keyword: True}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides={"lenient": False})
    compiler.compile(GrammarSpec("regex", "a"))
    assert keyword in llguidance.LLMatcher(compiler._tokenizer, grammar, log_level=0).get_error()
    with pytest.raises(GrammarError) as caught:
        read_json_schema(json.dumps({"items": {"anyOf": [{}, schema]}}))
    assert caught.value.path == f".items.anyOf[1].{keyword}"


def test_words_that_only_describe_are_taken(compiler):
    schema = {"type": "object", "title": "T", "description": "d", "x-mine": 1, "nullable": True, "deprecated": True}
    schema["properties"] = {"a": {"type": "array", "items": {"type": "null"}, "uniqueItems": False, "default": []}}
    mask = compiler.compile(GrammarSpec("json_schema", json.dumps(schema))).make_matcher().compute_mask([])
    assert mask is not None
    assert any(mask)


def object_of(required, **properties):
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    ("definition", "is_finite"),
    [
        (object_of([], a=NODE), True),
        (object_of(["a"], a=NODE), False),
        (object_of(["a"], a={"anyOf": [NODE, {"type": "null"}]}), True),
        (object_of(["a"], a={"anyOf": [NODE, object_of(["b"], b=NODE)]}), False),
        (object_of(["a"], a={"allOf": [{"type": "object"}, NODE]}), False),
        (object_of(["a"], a={"oneOf": [{"$ref": "#/$defs/leaf"}, NODE]}), True),
        (object_of(["a"], a={"type": "array", "items": NODE}), True),
        (object_of(["a"], a={"type": "array", "items": NODE, "minItems": 1}), False),
        (object_of(["a"], a={"type": "array", "prefixItems": [{}, NODE], "minItems": 1}), True),
        (object_of(["a"], a={"type": "array", "prefixItems": [{}, NODE], "minItems": 2}), False),
        (NODE, False),
        (object_of(["a"], a={"type": ["object", "null"], "properties": {"b": NODE}, "required": ["b"]}), True),
    ],
)
def test_endless_schemas(definition, is_finite):
    schema = {**NODE, "$defs": {"n": definition, "leaf": {"const": 1}}}
    if is_finite:
        check_termination(schema)
        return
    with pytest.raises(GrammarError, match="endless") as caught:
        check_termination(schema)
    assert caught.value.path.endswith(".$ref")


def test_many_references_take_linear_time():
    count = 4000
    definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}
    definitions[f"d{count}"] = {"type": "null"}
    check_termination({"$ref": "#/$defs/d0", "$defs": definitions})


def test_references_to_places_that_are_no_schemas_are_followed():
    schema = {"$ref": "#/shared/x~1y", "shared": {"x/y": {"type": "array", "items": {"contains": {}}}}}
    assert [path for path, _ in iterate_subschemas(schema)] == ["", ".shared.x~1y", ".shared.x~1y.items"]
    with pytest.raises(GrammarError, match="contains"):
        read_json_schema(json.dumps(schema))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("[]", "must be a JSON object"), ("", "not valid JSON"), ("[" * 100_000, "nested"), ("{" * 10, "not valid JSON")],
)
def test_texts_that_are_no_schema(text, problem):
    with pytest.raises(GrammarError, match=problem):
        read_json_schema(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4) | st.just("#") | st.just("#/a"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "anyOf", "allOf", "required", "minItems", "$ref", "$defs", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["type", "properties", "items", "anyOf", "$ref", "a"]), json_values, max_size=5))
def test_any_object_is_taken_or_refused(compiler, schema):
    try:
        matcher = compiler.compile(GrammarSpec("json_schema", json.dumps(schema))).make_matcher()
    except GrammarError:
        return
    mask = matcher.compute_mask([])
    assert mask is not None
    assert any(mask), "a form that is taken has a first token"


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 0),
        ("a{3}", 3),
        ("(ab){3}", 6),
        ("((ab){10}c){4}", 84),
        ("a{2}{3}", 6),
        ("[a{9}]{5}", 5),
        (r"\{9}", 0),
        (r"a\{9}b", 0),
        ("[]{9}]{2}", 2),
        ("[^]a]{2}", 2),
        ("a{,7}", 7),
        ("a{3,}", 3),
        ("{5}", 0),
        ("a{0}", 1),
        ("(((", 0),
        (")))a{4}", 7),
        ("[", 0),
        ("\\", 0),
    ],
)
def test_expansion_of_counted_repetitions(pattern, size):
    assert compute_expansion(pattern) == size


@given(st.text(alphabet="ab(){}[]\\,0123456789*+?|^-", max_size=30))
def test_expansion_takes_any_text(pattern):
    assert compute_expansion(pattern) >= 0
