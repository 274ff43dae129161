"""Argument parsing and the frame of every subcommand: errors, pipes, interruption."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from recipe_rs import RecipeError, __version__
from recipe_rs._cli import encode, fetch_tokenizer, inspect_prompt, parse, render
from recipe_rs._cli.errors import CommandError

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_COMMANDS = (render, encode, inspect_prompt, parse, fetch_tokenizer)

_EPILOG = """\
examples:
  recipe-rs fetch-tokenizer
  recipe-rs render --api messages --file request.json
  recipe-rs encode "How many tokens is this?"
  recipe-rs inspect --file prompt.txt
  recipe-rs parse "Let me see.</think>The answer is 4."
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command; each subcommand module adds its own part."""
    parser = argparse.ArgumentParser(
        prog="recipe-rs",
        description="Look at what lies between a chat request and a DeepSeek model: prompts, token ids, output.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"recipe-rs {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        command = commands.add_parser(
            module.NAME,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; usage errors leave through argparse with code 2."""
    options = build_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        options.run(options)
        sys.stdout.flush()
    except (CommandError, RecipeError) as error:
        print(f"recipe-rs {options.command}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:
        # The reader has left: what is still buffered has nowhere to go, and the interpreter must not try at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_OK
