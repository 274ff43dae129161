"""How many drafts of which request are verified: as many as make the most tokens per second. Pure functions.

The number of drafts may depend on the confidence of a draft only if the draft itself was not drawn at random, else
choosing what to verify would favour some tokens. A proposer that draws its drafts therefore gives confidences of two
ages: `choose_num_drafts` gets those of the step before, `share_drafts` those of the drafts at hand.
"""

from __future__ import annotations

from collections.abc import Sequence

_NEGLIGIBLE = 0.02
_LEAST_SECONDS = 1e-9  # a curve fitted to next to nothing may start at zero


def choose_num_drafts(
    survivals: Sequence[Sequence[float]], row_seconds: Sequence[float], extra_seconds: float, max_drafts: int
) -> int:
    """The total of drafts that maximises expected tokens / seconds.

    Every prefix of the drafts, most likely first, is tried: the cost curve may have steps.

    Args:
        survivals: for each of R requests, P(draft j and all before it are accepted), never increasing.
        row_seconds: what a step of n rows takes, by n; its last entry counts for more rows, too. Empty: unknown, then
            all drafts are verified.
        extra_seconds: what the step takes beside its rows.
        max_drafts: upper bound.
    """
    ranked = [value for values in survivals for value in values if value >= _NEGLIGIBLE]
    if not row_seconds:
        return min(len(ranked), max_drafts)
    ranked.sort(reverse=True)
    del ranked[max_drafts:]
    num_rows = len(survivals)
    last = len(row_seconds) - 1
    expected = float(num_rows)
    extra_seconds = max(extra_seconds, _LEAST_SECONDS)
    best_rate = expected / (row_seconds[min(num_rows, last)] + extra_seconds)
    best = 0
    for count, value in enumerate(ranked, 1):
        expected += value
        rate = expected / (row_seconds[min(num_rows + count, last)] + extra_seconds)
        if rate > best_rate:
            best_rate, best = rate, count
    return best


def compute_min_survival(least_row_seconds: float, seconds: float, num_requests: int) -> float:
    """What a draft must survive with to be worth verifying in any total: less never raises tokens / seconds.

    Args:
        least_row_seconds: the least time that a further row takes, averaged over any number of further rows.
        seconds: what the step takes without drafts; the rate is `num_requests` / `seconds` then.
    """
    return min(1.0, least_row_seconds * num_requests / seconds) if seconds > 0.0 else 0.0


def share_drafts(survivals: Sequence[Sequence[float]], num_drafts: int) -> list[int]:
    """Drafts of each request when the `num_drafts` most likely ones are verified; among equals the earlier request.

    As survivals never increase within a request, what it gets is the start of its drafts.
    """
    ranked = [(-value, index) for index, values in enumerate(survivals) for value in values if value >= _NEGLIGIBLE]
    ranked.sort()
    counts = [0] * len(survivals)
    for _, index in ranked[:num_drafts]:
        counts[index] += 1
    return counts
