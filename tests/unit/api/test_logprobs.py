"""Shapes of log probabilities, and that offsets follow the text even where tokens cut characters."""

from hypothesis import given
from hypothesis import strategies as st

from deepinfer.outputs import TokenLogprob
from deepinfer_api.formats.logprobs import CompletionLogprobs, chat_logprobs, prompt_logprobs, token_text


class ByteSpelling:
    """Token b is the byte b."""

    def token_bytes(self, token_id):
        return bytes([token_id])


def entry(token_id, *top):
    return TokenLogprob(token_id, -0.5, 1, tuple((i, -1.0) for i in top))


def test_token_text_of_whole_and_cut_characters():
    assert token_text(b" a") == " a"
    assert token_text("é".encode()) == "é"
    assert token_text(b"\xe2\x80") == "bytes:\\xe2\\x80"
    assert token_text(b"") == ""


def test_chat_entries():
    (shown,) = chat_logprobs(ByteSpelling(), [entry(65, 65, 195)])
    assert shown == {
        "token": "A",
        "logprob": -0.5,
        "bytes": [65],
        "top_logprobs": [
            {"token": "A", "logprob": -1.0, "bytes": [65]},
            {"token": "bytes:\\xc3", "logprob": -1.0, "bytes": [195]},
        ],
    }


@given(st.text(), st.lists(st.integers(1, 5), max_size=20))
def test_offsets_point_into_the_text(text, sizes):
    """A character belongs to the token that completes it, whatever the steps."""
    data = text.encode("utf-8", "ignore")
    grown = CompletionLogprobs(ByteSpelling(), 0)
    offsets, tokens, position = [], [], 0
    for size in [*sizes, len(data)]:
        part = grown.extend([entry(byte) for byte in data[position : position + size]])
        offsets += part["text_offset"]
        tokens += part["tokens"]
        position += size
    whole = data.decode()
    expected = []
    for index in range(len(data)):
        expected.append(len(data[:index].decode("utf-8", "ignore")))
    assert offsets == expected
    assert len(tokens) == len(data)
    assert all(offset <= len(whole) for offset in offsets)


def test_invalid_bytes_count_as_replacement_characters():
    grown = CompletionLogprobs(ByteSpelling(), 1)
    part = grown.extend([entry(0xFF, 1), entry(0xC3, 1), entry(0x41, 1), entry(0x42, 1)])
    assert part["text_offset"] == [0, 1, 1, 3]
    assert part["top_logprobs"][0] == {"\x01": -1.0}


def test_a_bare_id_has_no_log_probability():
    part = CompletionLogprobs(ByteSpelling(), 1).extend([65, entry(66, 67)])
    assert part["token_logprobs"] == [None, -0.5]
    assert part["top_logprobs"] == [None, {"C": -1.0}]


def test_without_alternatives_the_list_is_empty():
    assert CompletionLogprobs(ByteSpelling(), 0).extend([entry(66)])["top_logprobs"] == []


def test_prompt_positions():
    shown = prompt_logprobs(ByteSpelling(), [65, 66], [TokenLogprob(66, -2.0, 3, ((67, -0.1), (68, float("-inf"))))])
    assert shown == [
        None,
        {
            "67": {"logprob": -0.1, "rank": 1, "decoded_token": "C"},
            "68": {"logprob": -9999.0, "rank": 2, "decoded_token": "D"},
            "66": {"logprob": -2.0, "rank": 3, "decoded_token": "B"},
        },
    ]
    assert prompt_logprobs(ByteSpelling(), [65], None) == [None]
