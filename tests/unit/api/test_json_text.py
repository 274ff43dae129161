"""JSON of streamed text: one line for every reader, and the same text after parsing."""

import json

from hypothesis import given
from hypothesis import strategies as st

from deepinfer_api.formats.base import MIN_LOGPROB, finite_logprob, json_string, one_line

TEXT = st.text(st.characters(blacklist_categories=["Cs"]))


@given(TEXT)
def test_round_trip_on_one_line(text):
    encoded = json_string(text)
    assert json.loads(encoded) == text
    assert len(encoded.splitlines()) == 1
    assert encoded.encode()


def test_line_separators_are_escaped():
    assert json_string("a\u2028b\u2029c\x85d\ne") == '"a\\u2028b\\u2029c\\u0085d\\ne"'
    assert json_string("äöü 漢字") == '"äöü 漢字"'


@given(st.dictionaries(TEXT, TEXT))
def test_objects_are_ascii_on_one_line(value):
    line = one_line(value)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line) == value


def test_infinite_logprobs_become_a_number():
    assert finite_logprob(float("-inf")) == MIN_LOGPROB
    assert finite_logprob(-0.5) == -0.5
