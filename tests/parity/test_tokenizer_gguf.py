"""The default model's GGUF vocabulary and template against `transformers`."""

# ruff: noqa: RUF001

import json
import random
from pathlib import Path

import pytest

import recipe_rs
from deepinfer.env import cache_folder
from deepinfer.loader.default_model import find_default_model

gguf = pytest.importorskip("gguf", reason="PyPI gguf is not installed")
transformers = pytest.importorskip("transformers", reason="PyPI transformers is not installed")
pre_tokenizers = pytest.importorskip("tokenizers.pre_tokenizers", reason="PyPI tokenizers is not installed")
ROOT = Path(__file__).parents[2]
MODEL = find_default_model((ROOT / "weights", cache_folder()))
if MODEL is None:
    pytest.skip("the default model is not downloaded (make model)", allow_module_level=True)

CHAT_IDS = (
    "1 9690 198 2683 359 253 5356 5646 11173 3365 3511 308 34519 28 7018 411 407 19712 8182 2 198 "
    "1 4093 198 1780 314 260 3575 282 4649 47 2 198 1 520 9531 198"
)


@pytest.fixture(scope="module")
def fields() -> dict:
    reader = gguf.GGUFReader(MODEL)
    return {name: field.contents() for name, field in reader.fields.items() if name.startswith("tokenizer.")}


@pytest.fixture(scope="module")
def ours(fields: dict) -> recipe_rs.Tokenizer:
    return recipe_rs.Tokenizer.from_gguf_vocabulary(
        model=fields["tokenizer.ggml.model"],
        pre=fields["tokenizer.ggml.pre"],
        tokens=fields["tokenizer.ggml.tokens"],
        merges=fields["tokenizer.ggml.merges"],
        scores=None,
        token_types=fields["tokenizer.ggml.token_type"],
    )


@pytest.fixture(scope="module")
def reference():
    """The converted tokenizer. The conversion drops the file's pre-tokenizer name, so that is set here."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL.parent, gguf_file=MODEL.name).backend_tokenizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def test_known_ids(ours: recipe_rs.Tokenizer) -> None:
    assert ours.encode("abc 12345 x") == [25276, 216, 33, 34, 35, 36, 37, 1792]


def test_chat(ours: recipe_rs.Tokenizer, fields: dict) -> None:
    encoding = recipe_rs.ChatTemplateEncoding(fields["tokenizer.chat_template"], ours)
    rendered = encoding.render(json.dumps([{"role": "user", "content": "What is the capital of France?"}]))
    assert memoryview(encoding.encode(rendered)).cast("I").tolist() == [int(token_id) for token_id in CHAT_IDS.split()]


@pytest.mark.filterwarnings("ignore")
def test_random_strings(ours: recipe_rs.Tokenizer, reference) -> None:
    rng = random.Random(10)
    pools = [
        "abcXYZ'stll",
        "0123１Ⅷ",
        " \t\n\r",
        ".,;(){}<|",
        "éüß漢字あア",
        "\0\x7f\u0301😀привет",
        "한국\u3000\u00a0",
    ]
    for _ in range(1500):
        chosen = rng.sample(pools, rng.randint(1, 4))
        text = "".join(rng.choice(rng.choice(chosen)) for _ in range(rng.randint(1, 90)))
        expected = reference.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == expected, ascii(text)
        assert ours.decode(expected) == reference.decode(expected, skip_special_tokens=False)
