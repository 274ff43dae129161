"""The index finds what a search from the end to the start finds, and copies past its own end."""

from hypothesis import given
from hypothesis import strategies as st

from deepinfer.speculative.token_index import MAX_MATCH, MIN_MATCH, TokenIndex

tokens = st.lists(st.integers(0, 3), max_size=60)


def search(token_ids, max_candidates=8):
    """(end, length) of the longest match among the latest places, by definition."""
    best = None
    num_places = 0
    for end in range(len(token_ids) - 1, MIN_MATCH - 1, -1):
        length = 0
        while length < min(end, MAX_MATCH) and token_ids[end - 1 - length] == token_ids[-1 - length]:
            length += 1
        if length < MIN_MATCH:
            continue
        num_places += 1
        if num_places > max_candidates:
            break
        if best is None or length > best[1]:
            best = (end, length)
    return best


@given(tokens, st.integers(0, 60))
def test_finds_the_longest_of_the_latest_places(token_ids, split):
    index = TokenIndex()
    index.extend(token_ids[:split])
    index.extend(token_ids[split:])
    match = index.find_match()
    expected = search(token_ids)
    if expected is None:
        assert match is None
    else:
        assert (match.end, match.length) == expected
        assert 1 <= match.num_agreeing <= match.num_places <= 8


def test_large_ids_and_long_repetitions():
    index = TokenIndex()
    index.extend([2**32 - 1, 5] * 50)
    match = index.find_match()
    assert match.length == MAX_MATCH
    assert index.copy_from(match.end, 5) == [2**32 - 1, 5, 2**32 - 1, 5, 2**32 - 1]


def test_copy_repeats_the_end():
    index = TokenIndex()
    index.extend([1, 2, 3])
    assert index.copy_from(1, 7) == [2, 3, 2, 3, 2, 3, 2]
    assert index.copy_from(0, 2) == [1, 2]


def test_nothing_to_find():
    for token_ids in ([], [1], [1, 1], [1, 2, 3, 4], [1, 2, 3, 2]):
        index = TokenIndex()
        index.extend(token_ids)
        assert index.find_match() is None
