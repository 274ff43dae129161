"""How large a regular expression becomes when its counted repetitions are written out."""

from __future__ import annotations

import re
from typing import Final

MAX_EXPANSION: Final = 50_000
"""Larger ones take seconds for a single token, and many more states than a request is worth."""

_COUNTS = re.compile(r"\{(\d{0,9})(,?)(\d{0,9})\}")


def compute_expansion(pattern: str) -> int:
    """Number of atoms that counted repetitions such as `{2,5}` stand for, nested ones multiplied. Never raises: a
    malformed pattern is for the compiler to refuse."""
    sizes = [0]  # of the groups that are open
    expansion = 0
    atom = 0  # size of the last atom
    position, end = 0, len(pattern)
    while position < end:
        character = pattern[position]
        position += 1
        counts = _COUNTS.match(pattern, position - 1) if character == "{" else None
        if counts is not None:
            low, _, high = counts.groups()
            repeated = atom * max(int(low or 0), int(high or 0), 1)
            sizes[-1] += repeated - atom
            expansion = max(expansion, sizes[-1])
            atom = repeated
            position = counts.end()
        elif character == "(":
            sizes.append(0)
        elif character == ")" and len(sizes) > 1:
            atom = max(1, sizes.pop())
            sizes[-1] += atom
        elif character == "[":
            position = _skip_class(pattern, position)
            atom = 1
            sizes[-1] += 1
        elif character not in "*+?|^$":
            position += character == "\\"
            atom = 1
            sizes[-1] += 1
    return expansion


def _skip_class(pattern: str, position: int) -> int:
    """Index behind the `]` that ends a character class whose `[` is before `position`."""
    start = position + (pattern[position : position + 1] == "^")
    position = start
    while position < len(pattern) and (pattern[position] != "]" or position == start):
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
