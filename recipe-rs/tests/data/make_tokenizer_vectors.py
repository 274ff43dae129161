"""Writes `bpe_small.json` and `tokenizer_vectors.json`: a small vocabulary, texts, and the ids the reference gives.

The reference is PyPI `tokenizers` (pinned in the parity extra). The vocabulary is trained here on a few lines in
several scripts; the vectors encode the same texts with each pre-tokenizer that the codec implements.

    python recipe-rs/tests/data/make_tokenizer_vectors.py
"""

import json
import random
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).parent
BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"""
    "\r\n"
    r"""\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["""
    "\r\n"
    r"""]*|\s*["""
    "\r\n"
    r"""]+|\s+(?!\S)|\s+""",
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and they're not done; it's what we'll do.",
    "def main(argc, argv):\n    return {'key': [1, 2, 345], \"other\": None}\n\n\n\tx = y_1 + z2;",
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。ラーメン・カレー。",
    "道可道，非常道。名可名，非常名。无名天地之始，有名万物之母。",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ça va? Où êtes-vous né?",
    'aaaa bbbb abab baba    \r\n  <html><body class="x">&nbsp;</body></html> ///// ----- =====',
]
ADDED = ["<｜begin｜>", "<｜end｜>", "<think>", "</think>"]
POOLS = [
    "abcdeSTMlrv'",
    " \t\n\r  \u00a0\u3000\u0085",
    "0123456789１Ⅷ½〇",
    ".,;:!?()[]{}<>/\\\"'`~@#$%^&*-_=+|",
    "éüñßçøſ",
    "漢字仮名道可あいうアイウーてに",
    "。、・「」！゛゜\u3040\u3097\u3099",
    "\u0301\u0308\u0e31",
    "\0\x01\x7f\u200b\ufeff\ue000\U000e0001",
    "😀👍🏽→€∑\u20c1",
    "привет한국어مرحبا",
]


def splits(*patterns: str) -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    steps = {
        "deepseek-v3": splits(*DEEPSEEK),
        "gpt-2": splits(GPT2),
        "smollm": [pre_tokenizers.Digits(individual_digits=True), *splits(GPT2)],
        "llama-bpe": splits(LLAMA3),
        "qwen2": splits(QWEN2),
    }[name]
    return pre_tokenizers.Sequence([*steps, BYTE_LEVEL])


def texts() -> list[str]:
    rng = random.Random(20260101)
    made = ["", " ", "\n", "a", *CORPUS, *(text[:23] + text[11:] for text in CORPUS)]
    made += [
        "I'M we'LL he'ſ x'S 'tis",
        "<think>a</think><｜begin｜> <｜end",
        "a" * 200,
        "道" * 70,
        "ab" * 60 + "é" * 40,
    ]
    for _ in range(60):
        pools = rng.sample(POOLS, rng.randint(1, 4))
        made.append("".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 24))))
    return made


def piece_lengths(tokenizer: Tokenizer, text: str) -> list[int]:
    """Returns the length in bytes of each pre-token of `text` (normalized, if the tokenizer normalizes)."""
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    return [len(piece) for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


def main() -> None:
    """Trains the vocabulary and writes both files."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer("deepseek-v3")
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        CORPUS * 3, trainers.BpeTrainer(vocab_size=900, show_progress=False, initial_alphabet=alphabet, min_frequency=2)
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in ADDED[:2]])
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in ADDED[2:]])
    small = json.loads(tokenizer.to_str())
    (HERE / "bpe_small.json").write_text(json.dumps(small, ensure_ascii=False) + "\n")

    vectors = {"texts": texts(), "pre_tokenizers": {}, "piece_lengths": {}, "ids": {}}
    for name in ("deepseek-v3", "gpt-2", "smollm", "llama-bpe", "qwen2"):
        tokenizer.pre_tokenizer = pre_tokenizer(name)
        if name == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
        kind = json.loads(tokenizer.to_str())
        vectors["pre_tokenizers"][name] = [kind["normalizer"], kind["pre_tokenizer"]]
        vectors["piece_lengths"][name] = [piece_lengths(tokenizer, text) for text in vectors["texts"]]
        vectors["ids"][name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in vectors["texts"]]
    (HERE / "tokenizer_vectors.json").write_text(json.dumps(vectors, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
