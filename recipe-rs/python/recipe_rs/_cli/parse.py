"""`recipe-rs parse`: the text that a model wrote, as a response or as stream events."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe_rs import (
    ChatCompletionChunkGenerator,
    ChatCompletionResponse,
    InferenceChunk,
    InferenceFinishReason,
    MessagesChunkGenerator,
    MessagesResponse,
    ParsingOptions,
    ResponsesChunkGenerator,
    ResponsesResponse,
    StreamProcessor,
    ThinkingInitialStage,
)
from recipe_rs._cli.errors import CommandError
from recipe_rs._cli.request import add_conversion_arguments, converted
from recipe_rs._cli.sources import add_text_arguments, read_file, read_text

NAME = "parse"
SUMMARY = "turn a model's output into a response"
DESCRIPTION = """\
Turn the text that a model wrote, with its reasoning and tool calls, into the response of a protocol, or into the
events of a stream. The request that the output answers may be given; without it, any tool may be called."""
EPILOG = """\
examples:
  recipe-rs parse "Let me see.</think>The answer is 4."
  recipe-rs parse --api messages --events --chunk-size 5 --file output.txt
  recipe-rs parse --api responses --request request.json --file output.txt
  recipe-rs parse --no-thinking --format hermes --file output.txt
"""

_ID, _MODEL = "parsed", "model"
_RESPONSES: dict[str, Any] = {
    "chat": ChatCompletionResponse,
    "responses": ResponsesResponse,
    "messages": MessagesResponse,
}
_FINISH_REASONS = {
    "stop": InferenceFinishReason.Stop,
    "length": InferenceFinishReason.Length,
    "content_filter": InferenceFinishReason.ContentFilter,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_text_arguments(parser, "the model's output")
    parser.add_argument(
        "--api", choices=tuple(_RESPONSES), default="chat", help="protocol of the response (default: chat)"
    )
    parser.add_argument(
        "--format",
        choices=("dsml", "none", "think", "hermes", "llama3", "mistral"),
        default="dsml",
        help="how the model writes reasoning and tool calls, without --request (default: dsml, as DeepSeek V4 does)",
    )
    parser.add_argument("--request", type=Path, metavar="PATH", help="JSON request that the output answers")
    add_conversion_arguments(parser)
    parser.add_argument("--no-thinking", action="store_true", help="the output starts after the reasoning")
    parser.add_argument("--events", action="store_true", help="print the events of a stream instead of the response")
    parser.add_argument(
        "--chunk-size",
        type=_positive,
        metavar="N",
        help="characters of the output that arrive at once (default: all)",
    )
    parser.add_argument(
        "--finish-reason", choices=tuple(_FINISH_REASONS), default="stop", help="why the model ended (default: stop)"
    )


def run(options: argparse.Namespace) -> None:
    """Print the response as JSON, or the events as server-sent events."""
    response_class = _RESPONSES[options.api]
    response = response_class(_ID, _MODEL, 0, 0, 0)
    for chunk in _chunks(_processor(options), read_text(options), options):
        if options.events:
            name = response_class.sse_event_name(chunk)
            print(*([f"event: {name}"] if name else []), f"data: {chunk.to_json()}", "", sep="\n")
        else:
            response.accumulate(chunk)
    if not options.events:
        print(response.to_json())
    elif (done := response_class.sse_done_data()) is not None:
        print(f"data: {done}\n")


def _processor(options: argparse.Namespace) -> StreamProcessor:
    """A processor for the output: as the request says, or as for one that allows tool calls."""
    if options.request is None:
        stage = None if options.no_thinking else ThinkingInitialStage.ReasoningStart
        settings = ParsingOptions(thinking_initial_stage=stage, output_format=options.format)
    elif options.no_thinking:
        raise CommandError("--no-thinking and --request are both given; the request says whether the model thinks")
    else:
        settings = converted(read_file(options.request), options.api, options).parsing_options
        stage = settings.thinking_initial_stage
    generator: ChatCompletionChunkGenerator | ResponsesChunkGenerator | MessagesChunkGenerator
    if options.api == "chat":
        generator = ChatCompletionChunkGenerator(_ID, _MODEL, stage)
    elif options.api == "responses":
        generator = ResponsesChunkGenerator(_ID, _MODEL, stage is not None, compat=options.compat)
    else:
        generator = MessagesChunkGenerator(_ID, _MODEL, stage is not None)
    return StreamProcessor(generator, settings)


def _chunks(processor: StreamProcessor, text: str, options: argparse.Namespace) -> Iterator[Any]:
    """The protocol chunks of the output, which arrives in pieces."""
    size = options.chunk_size or max(len(text), 1)
    yield from processor.push(InferenceChunk.ready())
    for start in range(0, len(text), size):
        yield from processor.push(InferenceChunk.text(text[start : start + size]))
    yield from processor.push(InferenceChunk.finish(_FINISH_REASONS[options.finish_reason]))
    yield from processor.finish()


def _positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
