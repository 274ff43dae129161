"""How many random cases a comparison draws."""

from __future__ import annotations

import os

CI_CASES = 2_000
FULL_CASES = 100_000


def cases(share: float = 1.0) -> int:
    """Cases of one kind of comparison: 100,000 with RECIPE_PARITY_FULL=1, else 2,000, times `share`."""
    total = FULL_CASES if os.environ.get("RECIPE_PARITY_FULL") == "1" else CI_CASES
    return max(1, round(total * share))
