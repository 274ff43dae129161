"""Where one output stands in its grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepinfer.errors import RequestError

if TYPE_CHECKING:
    import llguidance


class GrammarMatcher:
    """Follows the output of one request; a `TokenMatcher`.

    It is told the whole output each time and catches up by itself: a fresh matcher given the output of a request that
    was preempted, or one given an output that was cut back, stands where it should.
    """

    __slots__ = ("_eos_token_ids", "_matcher", "_num_consumed", "_num_searched", "_opening", "_start", "_trigger")

    def __init__(
        self,
        matcher: llguidance.LLMatcher,
        eos_token_ids: frozenset[int],
        *,
        start_after_token_ids: tuple[int, ...] = (),
        opening_token_id: int | None = None,
    ) -> None:
        self._matcher = matcher
        self._eos_token_ids = eos_token_ids
        self._trigger = start_after_token_ids
        self._opening = opening_token_id
        self._start: int | None = None if start_after_token_ids else 0  # where the grammar begins in the output
        self._num_searched = 0  # output tokens in which the trigger does not end
        self._num_consumed = 0  # output tokens behind `_start` that the grammar has seen

    def compute_mask(self, output_token_ids: Sequence[int]) -> bytes | None:
        """Which tokens may come next.

        Returns:
            One bit for each id, the lowest bit of a byte first; None while everything is allowed.

        Raises:
            RequestError: the output does not follow the grammar, or the grammar became too complex.
        """
        matcher = self._matcher
        if self._trigger and self._start is not None and max(1, self._start) > len(output_token_ids):
            matcher.reset()  # cut back to before the trigger, or to where it may still be needed
            self._start = None
            self._num_consumed = self._num_searched = 0
        if self._start is None:
            if self._opening is not None and not output_token_ids:
                start_mask = bytearray(matcher.compute_bitmask())
                start_mask[self._opening // 8] |= 1 << self._opening % 8
                return bytes(start_mask)
            self._start = self._find_start(output_token_ids)
            if self._start is None:
                return None
        num_grown = len(output_token_ids) - self._start - self._num_consumed
        if num_grown < 0:
            matcher.rollback(-num_grown)
            self._num_consumed += num_grown
        elif num_grown > 0:
            new_token_ids = list(output_token_ids[len(output_token_ids) - num_grown :])
            num_taken = matcher.try_consume_tokens(new_token_ids)
            self._num_consumed += num_taken
            if num_taken < num_grown and not matcher.is_error():
                if not matcher.is_accepting() or not self._eos_token_ids.issuperset(new_token_ids[num_taken:]):
                    raise RequestError("the output left its grammar")
                return self._make_end_mask()  # complete, and the ends that follow are none of its business
        mask = matcher.compute_bitmask()
        if matcher.is_error():
            raise RequestError(f"the output left its grammar: {matcher.get_error().splitlines()[0]}")
        return mask

    def _make_end_mask(self) -> bytes:
        mask = bytearray(len(self._matcher.compute_bitmask()))
        for token_id in self._eos_token_ids:
            mask[token_id // 8] |= 1 << token_id % 8
        return bytes(mask)

    def _find_start(self, token_ids: Sequence[int]) -> int | None:
        """Index behind the first occurrence of the trigger, or None."""
        if self._opening is not None and token_ids[0] != self._opening:
            return 0
        size = len(self._trigger)
        for end in range(max(size, self._num_searched + 1), len(token_ids) + 1):
            if tuple(token_ids[end - size : end]) == self._trigger:
                return end
        self._num_searched = len(token_ids)
        return None
