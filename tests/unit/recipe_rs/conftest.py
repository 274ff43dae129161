"""Small tokenizers shared by the tests of the codec."""

import json
from pathlib import Path

import pytest

import recipe_rs

DATA = Path(__file__).parents[3] / "recipe-rs" / "tests" / "data"


@pytest.fixture(scope="session")
def small_json() -> str:
    """A `tokenizer.json` with 600 tokens and DeepSeek's pre-tokenizer."""
    return (DATA / "bpe_small.json").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def small(small_json: str) -> recipe_rs.Tokenizer:
    return recipe_rs.Tokenizer.from_str(small_json)


@pytest.fixture(scope="session")
def vectors() -> dict:
    """Texts and the ids that the reference gives them with each pre-tokenizer."""
    return json.loads((DATA / "tokenizer_vectors.json").read_text(encoding="utf-8"))
