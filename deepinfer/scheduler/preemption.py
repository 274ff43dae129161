"""Which running request gives up its blocks when others need them."""

from __future__ import annotations

from collections.abc import Iterable

from deepinfer.request import Request


def choose_victim(candidates: Iterable[Request]) -> Request | None:
    """Lowest priority first; then who was preempted least, so that nobody is hit again and again; then requests that
    have not produced anything, newest first (no reader sees a pause); then the longest output; then the newest.

    Returns None without candidates.
    """
    return max(candidates, key=_rank, default=None)


def _rank(request: Request) -> tuple[int, int, bool, int, int]:
    priority, _, arrival = request.queue_key
    num_outputs = len(request.output_token_ids)
    return priority, -request.num_preemptions, num_outputs == 0, num_outputs, arrival
