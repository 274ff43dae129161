"""From the input of a command to token ids: a text, or the prompt of a request."""

from __future__ import annotations

import argparse

from recipe_rs import SYSTEM_PLACEHOLDER, SpecialToken, Tokenizer
from recipe_rs._cli.errors import CommandError
from recipe_rs._cli.request import APIS, add_conversion_arguments, converted, is_v41, rendered
from recipe_rs._cli.sources import read_text, read_tokenizer_file


def add_prompt_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how the input becomes token ids."""
    parser.add_argument(
        "--plain",
        action="store_true",
        help="take spellings of special tokens in a text as plain text, as user input is taken",
    )
    parser.add_argument(
        "--api", choices=tuple(APIS), help="the input is a JSON request of this protocol; take the prompt made of it"
    )
    add_conversion_arguments(parser)


def tokenized_prompt(options: argparse.Namespace) -> tuple[Tokenizer, list[int]]:
    """The tokenizer and the token ids of the command's input.

    Raises:
        CommandError, RecipeError: the input or the tokenizer cannot be used.
    """
    if options.api is None:
        tokenizer = Tokenizer.from_str(read_tokenizer_file(options))
        text = read_text(options)
        if options.plain:
            return tokenizer, list(memoryview(tokenizer.encode_plain(text)).cast("I"))
        return tokenizer, tokenizer.encode(text)
    if options.plain:
        raise CommandError("--plain is for texts; leave it out with --api")
    request = converted(read_text(options), options.api, options)
    prompt = rendered(request, compat=options.compat)
    file = read_tokenizer_file(options)
    system = SpecialToken.System.default_str()
    if is_v41(request) and system not in file:
        # V4.1 gives this name to a token that the file of V4 holds in reserve.
        file = file.replace(SYSTEM_PLACEHOLDER, system)
    tokenizer = Tokenizer.from_str(file)
    return tokenizer, list(memoryview(tokenizer.encode_ranges(prompt.prompt, prompt.special_ranges)).cast("I"))
