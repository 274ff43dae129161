"""Colours of a terminal."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TextIO


class Style(Enum):
    """How a piece of output looks; the value is its ANSI parameter."""

    SPECIAL = "1;36"
    IDS = "2"
    WARNING = "33"


def wants_colour(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to colour output: `always`, `never`, or by terminal and the variable NO_COLOR for `auto`."""
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and (stream or sys.stdout).isatty()


def paint(text: str, style: Style, *, colour: bool) -> str:
    """The text in a style, or as it is."""
    return f"\x1b[{style.value}m{text}\x1b[0m" if colour else text
