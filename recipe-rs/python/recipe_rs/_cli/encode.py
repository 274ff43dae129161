"""`recipe-rs encode`: a text, or the prompt of a request, as token ids."""

from __future__ import annotations

import argparse

from recipe_rs._cli.prompt import add_prompt_arguments, tokenized_prompt
from recipe_rs._cli.sources import add_text_arguments, add_tokenizer_argument

NAME = "encode"
SUMMARY = "print the token ids of a text or request"
DESCRIPTION = "Print the token ids of a text, or of the prompt that a request becomes, on one line."
EPILOG = """\
examples:
  recipe-rs encode "Hello, world"
  recipe-rs encode --count < book.txt
  recipe-rs encode --api chat --file request.json
  recipe-rs encode --plain "<think> is plain text here"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_text_arguments(parser, "the text or request")
    add_prompt_arguments(parser)
    add_tokenizer_argument(parser)
    parser.add_argument("--count", action="store_true", help="print only how many tokens there are")


def run(options: argparse.Namespace) -> None:
    """Print ids or their number."""
    _, ids = tokenized_prompt(options)
    print(len(ids) if options.count else " ".join(map(str, ids)))
