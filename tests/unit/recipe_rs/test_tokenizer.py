"""`recipe_rs.Tokenizer` and `GrowingPrompt`: ids, ranges, decoding, errors."""

# ruff: noqa: RUF001

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe_rs


def ids(data: bytes) -> list[int]:
    return memoryview(data).cast("I").tolist()


def gguf_arguments(small_json: str, pre: str) -> dict:
    """The small vocabulary as the keys of a GGUF file would hold it."""
    file = json.loads(small_json)
    spellings = {token["id"]: token["content"] for token in file["added_tokens"]}
    spellings |= {token_id: text for text, token_id in file["model"]["vocab"].items()}
    kinds = {token["id"]: 3 if token["special"] else 4 for token in file["added_tokens"]}
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": [spellings[token_id] for token_id in range(len(spellings))],
        "merges": [" ".join(merge) for merge in file["model"]["merges"]],
        "scores": None,
        "token_types": [kinds.get(token_id, 1) for token_id in range(len(spellings))],
    }


@pytest.mark.parametrize("pre", ["deepseek-v3", "gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_gguf_vocabularies_give_the_ids_of_the_reference(small_json: str, vectors: dict, pre: str) -> None:
    tokenizer = recipe_rs.Tokenizer.from_gguf_vocabulary(**gguf_arguments(small_json, pre))
    for text, expected in zip(vectors["texts"], vectors["ids"][pre], strict=True):
        assert tokenizer.encode(text) == expected
    assert tokenizer.special_token_ids == {tokenizer.token_to_id("<｜begin｜>"), tokenizer.token_to_id("<｜end｜>")}


def test_properties(small: recipe_rs.Tokenizer, small_json: str) -> None:
    added = {token["content"]: token["id"] for token in json.loads(small_json)["added_tokens"]}
    assert small.added_tokens == added
    assert small.vocab_size == max(added.values()) + 1
    assert small.id_to_token(small.token_to_id("<think>")) == "<think>"
    assert small.id_to_token(small.vocab_size) is None
    assert small.token_to_id("no such token") is None
    assert small.token_bytes(small.encode(" ")[0]) == b" "
    assert small.encode("") == []
    assert small.encode_plain("") == b""
    assert small.decode([]) == ""


def test_special_tokens_stand_only_in_the_given_ranges(small: recipe_rs.Tokenizer) -> None:
    think = small.token_to_id("<think>")
    text = "é<think>é<think>"
    assert small.encode(text).count(think) == 2
    assert think not in ids(small.encode_plain(text))
    ranged = ids(small.encode_ranges(text, [(1, 8)]))
    assert ranged == [*small.encode("é"), think, *ids(small.encode_plain("é<think>"))]
    assert small.decode(ranged) == text


@pytest.mark.parametrize("ranges", [[(0, 6)], [(1, 8)], [(0, 99)], [(3, 1)], [(0, 7), (0, 7)], [(7, 7)]])
def test_wrong_ranges_are_refused(small: recipe_rs.Tokenizer, ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(recipe_rs.TokenizerError, match="special range"):
        small.encode_ranges("<think>x", ranges)


def test_skipping_special_tokens(small: recipe_rs.Tokenizer) -> None:
    token_ids = small.encode("a<｜begin｜>b<think>")
    assert small.decode(token_ids, skip_special_tokens=True) == "ab<think>"
    assert small.decode([*token_ids, small.vocab_size]) == small.decode(token_ids)


@given(text=st.text(max_size=200), num_threads=st.integers(1, 4), copies=st.sampled_from([1, 3, 2000]))
def test_plain_text_round_trips(small: recipe_rs.Tokenizer, text: str, num_threads: int, copies: int) -> None:
    text *= copies
    data = small.encode_plain(text, num_threads=num_threads)
    assert small.decode(ids(data)) == text
    assert (
        b"".join(small.token_bytes(token_id) for token_id in ids(data)[:1000])
        == text.encode()[: len(b"".join(small.token_bytes(token_id) for token_id in ids(data)[:1000]))]
    )


@given(pieces=st.lists(st.text(max_size=30), max_size=6))
def test_growing_prompt_equals_the_whole(small: recipe_rs.Tokenizer, pieces: list[str]) -> None:
    prompt = recipe_rs.GrowingPrompt(small)
    for number in range(len(pieces)):
        before = ids(prompt.token_ids())
        stayed = prompt.append(pieces[number])
        now = ids(prompt.token_ids())
        assert now == ids(small.encode_plain("".join(pieces[: number + 1])))
        assert before[:stayed] == now[:stayed]
        assert len(prompt) == len(now)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "bert"}, "bert.*gpt2"),
        ({"pre": "mystery"}, "mystery.*smollm"),
        ({"token_types": [1]}, "token_types"),
        ({"merges": ["ab"]}, "ab"),
        ({"merges": ["nothing known"]}, "nothing"),
        ({"model": "llama"}, "scores"),
    ],
)
def test_damaged_gguf_vocabularies_are_refused(small_json: str, change: dict, message: str) -> None:
    with pytest.raises(recipe_rs.TokenizerError, match=message):
        recipe_rs.Tokenizer.from_gguf_vocabulary(**gguf_arguments(small_json, "gpt-2") | change)


def test_unreadable_files_are_refused(tmp_path) -> None:
    with pytest.raises(recipe_rs.TokenizerError, match="cannot be read"):
        recipe_rs.Tokenizer.from_file(tmp_path / "missing.json")
    with pytest.raises(recipe_rs.TokenizerError) as caught:
        recipe_rs.Tokenizer.from_str('{"model": 3}')
    assert isinstance(caught.value, ValueError | recipe_rs.RecipeError)
    assert caught.value.offset is not None


def test_bad_arguments(small: recipe_rs.Tokenizer) -> None:
    with pytest.raises(ValueError, match="num_threads"):
        small.encode_plain("a", num_threads=0)
    with pytest.raises(recipe_rs.TokenizerError, match="does not exist"):
        small.token_bytes(small.vocab_size)
    with pytest.raises(ValueError, match="surrogate"):
        small.encode("\ud800")
    with pytest.raises(TypeError):
        pickle.dumps(small)


def sentence_piece_arguments(*, add_space_prefix: bool) -> dict:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", "a", "b", "ab", "▁a", "▁ab", "aab"]
    return {
        "model": "llama",
        "pre": "default",
        "tokens": pieces,
        "merges": [],
        "scores": [0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0],
        "token_types": [2, 3, 3, *([6] * 256), *([1] * 7)],
        "add_space_prefix": add_space_prefix,
    }


def test_sentence_piece_vocabulary() -> None:
    tokenizer = recipe_rs.Tokenizer.from_gguf_vocabulary(**sentence_piece_arguments(add_space_prefix=True))
    names = [tokenizer.id_to_token(token_id) for token_id in tokenizer.encode("ab é")]
    assert names == ["▁ab", "▁", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(tokenizer.encode("ab é")) == "ab é"
    bare = recipe_rs.Tokenizer.from_gguf_vocabulary(**sentence_piece_arguments(add_space_prefix=False))
    assert [bare.id_to_token(token_id) for token_id in bare.encode("aab")] == ["aab"]
    stream = recipe_rs.TextStream(tokenizer)
    text = "".join(stream.push([token_id]).text for token_id in tokenizer.encode("ab é")) + stream.finish().text
    assert text == "ab é"
