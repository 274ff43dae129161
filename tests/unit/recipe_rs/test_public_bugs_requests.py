"""Faults that were reported in public, where the request, the vocabulary or log probabilities take part.

The numbers are those of the case list; the cases of text alone stand in `test_stream_public_bugs`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import recipe_rs
from tests.unit.recipe_rs.stream_driver import APIS, Answer, drive

MODEL = "DeepSeek-V4.1-Flash"
USER = [{"role": "user", "content": "Capital of France?"}]
CLASSES = {"chat": "ChatCompletionRequest", "responses": "ResponsesRequest", "messages": "MessagesRequest"}
# Fields of the request and whether the model thinks.
THINKING: list[tuple[str, dict[str, Any], bool]] = [
    ("chat", {}, True),
    ("chat", {"thinking": {"type": "enabled"}}, True),
    ("chat", {"thinking": {"type": "disabled"}}, False),
    ("chat", {"reasoning_effort": "none"}, False),
    ("chat", {"reasoning_effort": "low"}, True),
    ("responses", {}, True),
    ("responses", {"reasoning": {"effort": "none"}}, False),
    ("responses", {"reasoning": {"effort": "max"}}, True),
    ("messages", {}, True),
    ("messages", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, True),
    ("messages", {"thinking": {"type": "disabled"}}, False),
]


def answer_to(api: str, fields: dict[str, Any], output: str) -> tuple[str, dict[str, Any]]:
    """The prompt of a request and the whole response when the model writes `output`."""
    own = {"input": USER} if api == "responses" else {"messages": USER}
    request_class = getattr(recipe_rs, CLASSES[api])
    request = request_class({"model": MODEL, "max_tokens": 50, **own, **fields}).convert(recipe_rs.ConversionOptions())
    prompt = recipe_rs.DeepseekV41Encoding().render_conversation(request.conversation).prompt
    processor = recipe_rs.StreamProcessor(request_class.chunk_generator(request, "i", MODEL), request.parsing_options)
    kind = getattr(recipe_rs, CLASSES[api].replace("Request", "Response"))
    response = kind("i", MODEL, 0, 0, 0)
    stop = recipe_rs.InferenceChunk.finish(recipe_rs.InferenceFinishReason.Stop)
    for chunk in [*map(recipe_rs.InferenceChunk.text, output), stop]:
        for event in processor.push(chunk):
            response.accumulate(event)
    return prompt, json.loads(response.to_json())


@pytest.mark.parametrize(("api", "fields", "thinks"), THINKING)
def test_b17_prompt_and_parser_agree_on_thinking(api: str, fields: dict[str, Any], thinks: bool) -> None:
    prompt, response = answer_to(api, fields, "Paris")
    assert prompt.endswith("<think>" if thinks else "</think>")
    if api == "chat":
        message = response["choices"][0]["message"]
        texts = (message.get("reasoning_content") or "", message["content"] or "")
    elif api == "responses":
        found = {item["type"]: item["content"][0]["text"] for item in response["output"]}
        texts = (found.get("reasoning", ""), found.get("message", ""))
    else:
        blocks = {block["type"]: block for block in response["content"]}
        texts = (blocks.get("thinking", {}).get("thinking", ""), blocks.get("text", {}).get("text", ""))
    assert texts == (("Paris", "") if thinks else ("", "Paris"))


@pytest.mark.parametrize("api", APIS)
def test_b5_control_tokens_never_show_and_the_end_token_ends_the_turn(api: str, small: recipe_rs.Tokenizer) -> None:
    names = recipe_rs.SpecialTokens(bos="<｜begin｜>", eos="<｜end｜>")  # noqa: RUF001
    begin, end = (
        small.added_tokens[names.token(kind)] for kind in (recipe_rs.SpecialToken.Bos, recipe_rs.SpecialToken.Eos)
    )
    hello, there = small.encode("Hello"), small.encode(" there")
    ids = [*hello, begin, *there, end, *there, end]
    for pieces in ([ids], [[token_id] for token_id in ids]):
        stream = drive(pieces, api=api, tokenizer=small, special_tokens=names)
        assert stream.answer.content == "Hello there"
        assert stream.diagnostics.num_dropped_control_tokens >= 1


@pytest.mark.parametrize("stop", ["lo th", " there", "e"])
def test_b20_log_probabilities_stay_with_their_tokens(stop: str, small: recipe_rs.Tokenizer) -> None:
    ids = small.encode("Hello there, world")
    source = recipe_rs.ChatCompletionChunkGenerator("i", MODEL)
    processor = recipe_rs.StreamProcessor(source, recipe_rs.ParsingOptions(stop_sequences=[stop], compat=False), small)
    response = recipe_rs.ChatCompletionResponse("i", MODEL, 0, 0, 0)
    for number, token_id in enumerate(ids):
        if not processor.finished:
            for chunk in processor.push(recipe_rs.InferenceChunk.tokens([token_id], [(-float(number), [])])):
                response.accumulate(chunk)
    choice = json.loads(response.to_json())["choices"][0]
    text = "Hello there, world".split(stop)[0]
    assert choice["message"]["content"] == text
    entries = (choice["logprobs"] or {"content": []})["content"]
    assert [entry["logprob"] for entry in entries] == [-float(number) for number in range(len(entries))]
    shown = "".join(small.decode([token_id]) for token_id in ids[: len(entries)])
    assert shown.startswith(text)
    assert text.startswith("".join(entry["token"] for entry in entries[:-1]))


def test_b36_the_protocols_read_the_same_ids_alike(small: recipe_rs.Tokenizer) -> None:
    ids = small.encode("plan</think>Hello")
    for pieces in ([ids], [[token_id] for token_id in ids]):
        answers = [drive(pieces, api=api, stage="ReasoningStart", tokenizer=small).answer for api in APIS]
        assert {(answer.reasoning, answer.content) for answer in answers} == {("plan", "Hello")}
        assert answers[0] == Answer(reasoning="plan", content="Hello")
