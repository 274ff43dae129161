"""Random requests of the three protocols are accepted, refused and converted as the official codec does."""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.parity.case_counts import cases
from tests.parity.chat_requests import chat_body
from tests.parity.conversion_differences import rule_of
from tests.parity.converted import conversion
from tests.parity.messages_requests import messages_body
from tests.parity.request_pieces import MODELS, spoiled
from tests.parity.responses_requests import responses_body

official = pytest.importorskip("deepseek_recipe", reason="the official codec is not installed: pip install .[parity]")
recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

pytestmark = pytest.mark.parity

PROTOCOLS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "ChatCompletionRequest": chat_body,
    "ResponsesRequest": responses_body,
    "MessagesRequest": messages_body,
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {},
    {"default_thinking_mode": False},
    {"reasoning_content_behavior": ("ReasoningContentBehavior", "Reject")},
    {"thinking_max_tokens_upper_bound": 50, "non_thinking_max_tokens_upper_bound": 60},
    {
        "messages_web_search": ("WebSearchBehavior", "Drop"),
        "responses_web_search": ("WebSearchBehavior", "Reject"),
    },
]


def options_of(codec: ModuleType, described: dict[str, Any]) -> Any:
    def built(given_value: Any) -> Any:
        if isinstance(given_value, tuple):
            return getattr(getattr(codec, given_value[0]), given_value[1])
        return given_value

    return codec.ConversionOptions(**{name: built(given_value) for name, given_value in described.items()})


@pytest.fixture(scope="module")
def patch_descriptions() -> dict[str, str]:
    """The official description of apply_patch for each model: our codec does not ship it."""
    tools = [{"type": "custom", "name": "apply_patch"}]
    descriptions = {}
    for model in MODELS:
        request = official.ResponsesRequest({"model": model, "input": "x", "tools": tools})
        descriptions[model] = request.convert(official.ConversionOptions()).conversation.tools[0].description
    return descriptions


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "none"}, {"type": "tool", "name": "f"}])
@pytest.mark.parametrize("named", [[], ["f"], ["g"], ["f", "g"]])
def test_tools_that_a_message_adds(choice: dict[str, str], named: list[str]) -> None:
    added = [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}} for name in named]
    tools = [{"name": name, "input_schema": {"type": "object"}, "defer_loading": name != "h"} for name in "fgh"]
    content = [{"type": "text", "text": "x"}, *added]
    body = {
        "model": MODELS[1],
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": content}],
        "tools": tools,
        "tool_choice": choice,
        "thinking": {"type": "disabled"},
    }
    found = [
        conversion(codec, "MessagesRequest", body, codec.ConversionOptions()).detail for codec in (official, recipe_rs)
    ]
    assert found[0] == found[1]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("request_class", PROTOCOLS)
def test_random_requests_convert_alike(
    request_class: str,
    patch_descriptions: dict[str, str],
    coverage_table: Callable[[str, Mapping[str, int]], None],
) -> None:
    outcomes: collections.Counter[str] = collections.Counter()

    def compare(seed: int) -> None:
        rng = random.Random(seed)
        body = PROTOCOLS[request_class](rng)
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            body = spoiled(rng, body)
        described = rng.choice(OPTIONS)
        sent = json.dumps(body) if rng.random() < 0.1 else body
        our_options = options_of(recipe_rs, described)
        description = patch_descriptions.get(body["model"]) if isinstance(body.get("model"), str) else None
        if description is not None:
            our_options = our_options.with_apply_patch_description(description)
        theirs = conversion(official, request_class, sent, options_of(official, described))
        ours = conversion(recipe_rs, request_class, sent, our_options)
        rule = rule_of(theirs, ours)
        outcomes[rule.name if rule else "accepted" if theirs.is_accepted else "refused"] += 1

    for seed in range(cases()):
        compare(seed)
    coverage_table(f"conversion, {request_class}", outcomes)
    assert outcomes["accepted"] >= cases() // 10
    assert outcomes["refused"] >= cases() // 10
