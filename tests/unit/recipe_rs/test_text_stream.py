"""`recipe_rs.TextStream`: whole characters, stop strings, counts, for any cut of the ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe_rs

LETTERS = "aab é漢😀\ufffd"


def run(stream: recipe_rs.TextStream, chunks: list[list[int]]) -> tuple[str, str | None, list[recipe_rs.TextDelta]]:
    """Pushes the chunks until a stop string, finishes, and returns the joined text and the stop string."""
    deltas = []
    for chunk in chunks:
        deltas.append(stream.push(chunk))
        if deltas[-1].stop is not None:
            break
    deltas.append(stream.finish())
    return "".join(delta.text for delta in deltas), next((d.stop for d in deltas if d.stop is not None), None), deltas


def cut(items: list[int], sizes: list[int]) -> list[list[int]]:
    chunks = []
    for size in sizes:
        chunks.append(items[:size])
        items = items[size:]
    return [*chunks, items]


@given(data=st.data())
def test_any_cut_of_any_ids_gives_the_decoded_text(small: recipe_rs.Tokenizer, data: st.DataObject) -> None:
    token_ids = data.draw(st.lists(st.integers(0, small.vocab_size + 1), max_size=30))
    sizes = data.draw(st.lists(st.integers(0, 5), max_size=8))
    skip = data.draw(st.booleans())
    text, stop, deltas = run(recipe_rs.TextStream(small, skip_special_tokens=skip), cut(token_ids, sizes))
    assert text == small.decode(token_ids, skip_special_tokens=skip)
    assert stop is None
    assert deltas[-1].num_tokens == deltas[-1].num_released_tokens == len(token_ids)
    released = [delta.num_released_tokens for delta in deltas]
    assert released == sorted(released)


@given(data=st.data())
def test_stop_strings_cut_where_the_whole_text_has_them(small: recipe_rs.Tokenizer, data: st.DataObject) -> None:
    text = data.draw(st.text(LETTERS, max_size=40))
    stops = data.draw(st.lists(st.text(LETTERS, min_size=1, max_size=5), max_size=4))
    include = data.draw(st.booleans())
    sizes = data.draw(st.lists(st.integers(0, 5), max_size=10))
    token_ids = small.encode(text)
    stream = recipe_rs.TextStream(small, stop=stops, include_stop_str_in_output=include)
    got, stop, deltas = run(stream, cut(token_ids, sizes))

    ends = [(text.index(s) + len(s), -len(s), s) for s in stops if s in text]
    if not ends:
        assert (got, stop) == (text, None)
        return
    end, _, expected = min(ends)
    assert stop == expected
    assert got == (text[:end] if include else text[: end - len(expected)])
    last = deltas[-1].num_tokens
    assert len(small.decode(token_ids[:last]).encode()) >= len(text[:end].encode())
    assert len(b"".join(map(small.token_bytes, token_ids[: last - 1]))) < len(text[:end].encode())


def test_nothing_is_held_back_longer_than_needed(small: recipe_rs.Tokenizer) -> None:
    stream = recipe_rs.TextStream(small, stop=["abc"])
    pushed = [stream.push(small.encode(letter)) for letter in "xabab"]
    assert [delta.text for delta in pushed] == ["x", "", "", "ab", ""]
    assert [delta.num_released_tokens for delta in pushed] == [1, 1, 1, 3, 3]
    end = stream.finish()
    assert (end.text, end.stop, end.num_released_tokens) == ("ab", None, 5)


def test_half_a_character_waits(small: recipe_rs.Tokenizer) -> None:
    first, second = (small.encode_plain("漢")[at : at + 4] for at in (0, 4))
    token_ids = memoryview(small.encode_plain("漢")).cast("I").tolist()
    assert len(token_ids) > 1, (first, second)
    stream = recipe_rs.TextStream(small)
    for token_id in token_ids[:-1]:
        delta = stream.push([token_id])
        assert (delta.text, delta.num_released_tokens) == ("", 0)
    assert stream.push(token_ids[-1:]).text == "漢"


def test_incomplete_bytes_never_pile_up(small: recipe_rs.Tokenizer) -> None:
    lead = memoryview(small.encode_plain("漢")).cast("I")[0]
    stream = recipe_rs.TextStream(small)
    shown = "".join(stream.push([lead]).text for _ in range(2000))
    assert shown + stream.finish().text == "\ufffd" * 2000


def test_misuse_is_refused(small: recipe_rs.Tokenizer) -> None:
    with pytest.raises(recipe_rs.ConversionError, match=r"stop\[1\]"):
        recipe_rs.TextStream(small, stop=["a", ""])
    stream = recipe_rs.TextStream(small, stop=["a"])
    assert stream.push(small.encode("xa")).stop == "a"
    with pytest.raises(recipe_rs.StreamError):
        stream.push([1])
    assert stream.finish().text == ""
    with pytest.raises(RuntimeError):
        stream.finish()
