"""`recipe-rs render`: a request as the prompt that the model gets."""

from __future__ import annotations

import argparse
import json
import sys

from recipe_rs._cli.request import APIS, add_conversion_arguments, converted, rendered
from recipe_rs._cli.sources import add_text_arguments, read_text

NAME = "render"
SUMMARY = "print the prompt of a request"
DESCRIPTION = "Print the prompt that a JSON request of Chat Completions, Responses or Messages becomes."
EPILOG = """\
examples:
  recipe-rs render '{"model": "DeepSeek-V4-Pro", "messages": [{"role": "user", "content": "Hi"}]}'
  recipe-rs render --api messages --file request.json
  recipe-rs render --json --file request.json | jq .special_ranges
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_text_arguments(parser, "the request")
    parser.add_argument("--api", choices=tuple(APIS), default="chat", help="protocol of the request (default: chat)")
    add_conversion_arguments(parser)
    parser.add_argument(
        "--json", action="store_true", help="print prompt, ranges of its special tokens and number of images as JSON"
    )


def run(options: argparse.Namespace) -> None:
    """Print the prompt."""
    prompt = rendered(converted(read_text(options), options.api, options), compat=options.compat)
    if options.json:
        result = {
            "prompt": prompt.prompt,
            "special_ranges": prompt.special_ranges,
            "num_images": len(prompt.image_sources),
        }
        print(json.dumps(result, ensure_ascii=False))
    else:
        print(prompt.prompt, end="\n" if sys.stdout.isatty() else "")
