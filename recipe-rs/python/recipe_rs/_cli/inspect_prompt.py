"""`recipe-rs inspect`: a prompt with its special tokens and ids made visible."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from recipe_rs import Tokenizer
from recipe_rs._cli.colours import Style, paint, wants_colour
from recipe_rs._cli.prompt import add_prompt_arguments, tokenized_prompt
from recipe_rs._cli.sources import add_text_arguments, add_tokenizer_argument

NAME = "inspect"
SUMMARY = "show a prompt with its special tokens and ids"
DESCRIPTION = "Show a prompt piece by piece: special tokens in colour, plain text between them, and the ids of each."
EPILOG = """\
Line breaks and other control characters of the text are shown as escapes. Colours are used on a terminal only, and
not when NO_COLOR is set.

examples:
  recipe-rs inspect "<think>Hm.</think>Hello"
  recipe-rs inspect --tokens --file prompt.txt
  recipe-rs inspect --api messages --file request.json
  recipe-rs inspect --colour always --file prompt.txt | less -R
"""


class Piece(NamedTuple):
    """Part of a prompt: one special token, or the plain text up to the next."""

    text: str
    ids: tuple[int, ...]
    is_special: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_text_arguments(parser, "the prompt or request")
    add_prompt_arguments(parser)
    add_tokenizer_argument(parser)
    parser.add_argument("--tokens", action="store_true", help="one line per token instead of one per piece")
    parser.add_argument(
        "--colour", "--color", choices=("auto", "always", "never"), default="auto", help="default: auto"
    )


def run(options: argparse.Namespace) -> None:
    """Print the pieces and how many tokens they are."""
    tokenizer, ids = tokenized_prompt(options)
    colour = wants_colour(options.colour)
    num_special = 0
    for piece in pieces(tokenizer, ids, each_token=options.tokens):
        num_special += piece.is_special
        shown = escaped(piece.text)
        shown = paint(shown, Style.SPECIAL, colour=colour) if piece.is_special else shown
        print(shown, paint(f"[{' '.join(map(str, piece.ids))}]", Style.IDS, colour=colour))
    print(paint(f"{len(ids)} tokens, {num_special} of them special", Style.IDS, colour=colour))


def pieces(tokenizer: Tokenizer, ids: Sequence[int], *, each_token: bool) -> Iterator[Piece]:
    """The pieces of a prompt in order; together they hold exactly `ids`."""
    special = frozenset(tokenizer.added_tokens.values())
    for is_special, group in groupby(ids, key=special.__contains__):
        run_of_ids = tuple(group)
        if is_special or each_token:
            for token_id in run_of_ids:
                yield Piece(_text(tokenizer, (token_id,)), (token_id,), is_special)
        else:
            yield Piece(_text(tokenizer, run_of_ids), run_of_ids, is_special)


def _text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of some tokens; bytes of a part of a character are shown as escapes."""
    return b"".join(map(tokenizer.token_bytes, ids)).decode("utf-8", errors="backslashreplace")


def escaped(text: str) -> str:
    """The text on one line: control characters, line breaks and backslashes as escapes."""
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode() for char in text
    )
