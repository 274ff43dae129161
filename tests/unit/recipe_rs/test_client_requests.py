"""What real client packages send to chat, responses, messages and token counting converts with compat off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

recipe_rs = pytest.importorskip("recipe_rs", reason="the codec is not installed: pip install ./recipe-rs")

REQUESTS = Path(__file__).parents[2] / "data" / "codec_requests.jsonl"
CLASSES = {
    "chat/completions": "ChatCompletionRequest",
    "responses": "ResponsesRequest",
    "responses/input_tokens": "ResponsesRequest",
    "messages": "MessagesRequest",
    "messages/count_tokens": "MessagesRequest",
}
# The server puts stored items before the input; the codec sees them all.
STORED_CALL = {"type": "function_call", "call_id": "call_1", "name": "w", "arguments": "{}"}
ALIASES = ["deepseek-chat", "deepseek-reasoner", "claude-sonnet-4-5", "gpt-5"]


def recorded() -> list[tuple[str, str, dict[str, Any]]]:
    lines = [json.loads(line) for line in REQUESTS.read_text(encoding="utf-8").splitlines()]
    return [(line["id"], CLASSES[line["path"]], line["body"]) for line in lines]


def test_sixty_bodies_are_covered() -> None:
    assert len(recorded()) == 60


@pytest.mark.parametrize("version", ["DeepseekV4Pro", "DeepseekV41Flash"])
@pytest.mark.parametrize(
    ("request_id", "class_name", "body"), recorded(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_recorded_bodies_convert(request_id: str, class_name: str, body: dict[str, Any], version: str) -> None:
    options = recipe_rs.ConversionOptions().with_compat(False)
    for name in ALIASES:
        options = options.with_model_alias(name, getattr(recipe_rs.ModelVersion, version))
    if body.get("previous_response_id") and body["input"][0].get("type") == "function_call_output":
        body = {**body, "input": [STORED_CALL, *body["input"]]}
    request = getattr(recipe_rs, class_name)(body).convert(options)
    encoding = recipe_rs.DeepseekV4Encoding() if version == "DeepseekV4Pro" else recipe_rs.DeepseekV41Encoding()
    prompt = encoding.with_compat(False).render_conversation(request.conversation).prompt
    assert prompt.endswith(("<think>", "</think>", "calls>\n"))
