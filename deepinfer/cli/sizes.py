"""Human sizes of memory: `2GiB`, `512M`, `1.5g`, plain bytes."""

from __future__ import annotations

import re
from typing import Final

from deepinfer.errors import ConfigError

_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)\s*", re.IGNORECASE)
_EXPONENTS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str, name: str) -> int:
    """Bytes of a size; K, M, G and T are powers of 1024, with or without `B` or `iB`.

    Raises:
        ConfigError: it is no size.
    """
    match = _SIZE.fullmatch(text)
    num_bytes = int(float(match[1]) * 1024 ** _EXPONENTS[match[2].lower()]) if match else 0
    if num_bytes < 1:
        raise ConfigError(f"{name} must be a size like 2GiB or 512MiB, but is {text!r}")
    return num_bytes


def format_size(num_bytes: int) -> str:
    """A size with one unit and at most one decimal."""
    value = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
