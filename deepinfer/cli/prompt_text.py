"""Text that a user hands to a command, from its arguments or standard input: valid UTF-8 or one sentence."""

from __future__ import annotations

import os
import sys

from deepinfer.errors import ConfigError


def read_prompt(argument: str) -> str:
    """The prompt of a command line; `-` reads standard input to its end.

    Raises:
        ConfigError: the bytes are not UTF-8.
    """
    if argument == "-":
        return _decode(sys.stdin.buffer.read(), "standard input")
    return check_text(argument, "the prompt")


def check_text(text: str, name: str) -> str:
    """The text itself, if the bytes that the shell or the terminal gave for it are UTF-8.

    Raises:
        ConfigError: they are not.
    """
    # Python keeps undecodable bytes of arguments as lone surrogates; no request can carry those.
    return _decode(os.fsencode(text), name)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{name} must be UTF-8 text, but has the byte 0x{data[error.start]:02x} at position {error.start}"
        ) from None
