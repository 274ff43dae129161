"""What commands read: texts, and the tokenizer."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import cast

from recipe_rs._cli.errors import CommandError


def add_text_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the arguments by which a command gets its input text."""
    parser.add_argument("text", nargs="?", metavar="TEXT", help=f"{what} (default: standard input)")
    parser.add_argument("--file", type=Path, metavar="PATH", help=f"read {what} from this file")


def read_text(options: argparse.Namespace) -> str:
    """The input text of a command: its argument, the file that --file names, or standard input.

    Raises:
        CommandError: the file cannot be read, is no UTF-8, or both argument and file are given.
    """
    if options.text is not None and options.file is not None:
        raise CommandError("TEXT and --file are both given; leave one out")
    if options.text is not None:
        return _checked(str(options.text))
    if options.file is not None:
        return read_file(options.file)
    if sys.stdin.isatty():
        print("reading standard input; end it with Ctrl-D", file=sys.stderr)
    # In pieces: one read of everything would hold back an interruption that arrives with data.
    stdin = cast(io.BufferedReader, sys.stdin.buffer)
    pieces = iter(lambda: stdin.read1(1 << 16), b"")
    return _decoded(b"".join(pieces), "standard input")


def add_tokenizer_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the tokenizer file."""
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="tokenizer.json of the model (default: the one that `recipe-rs fetch-tokenizer` stored)",
    )


def read_tokenizer_file(options: argparse.Namespace) -> str:
    """The text of the tokenizer file that --tokenizer names, else of the fetched one.

    Raises:
        CommandError: there is no such file, or it is no UTF-8.
    """
    path: Path = options.tokenizer or default_tokenizer_path()
    if options.tokenizer is None and not path.is_file():
        raise CommandError("there is no tokenizer yet; run `recipe-rs fetch-tokenizer`, or pass --tokenizer PATH")
    return read_file(path)


def default_tokenizer_path() -> Path:
    """Where `recipe-rs fetch-tokenizer` stores the tokenizer: in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "recipe-rs" / "deepseek-v4" / "tokenizer.json"


def read_file(path: Path) -> str:
    """The text of a file.

    Raises:
        CommandError: it cannot be read, or is no UTF-8.
    """
    try:
        return _decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}") from error


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8 text: byte {error.start} does not belong there") from error


def _checked(text: str) -> str:
    """The text of an argument; bytes that the shell passed and that are no UTF-8 are refused."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CommandError(f"TEXT is not UTF-8: character {error.start} does not belong there") from error
    return text
