"""Waiting requests in the order in which they should start."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter

from deepinfer.request import Request

_queue_key = attrgetter("queue_key")


class RequestQueue:
    """Ordered by priority, then by first arrival. A request that comes back keeps its place."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._num_arrivals = 0

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> Request:
        return self._requests[index]

    def add(self, request: Request) -> None:
        """Queue a request for the first time."""
        self._num_arrivals += 1
        request.queue_key = (request.sampling_params.priority, self._num_arrivals)
        insort(self._requests, request, key=_queue_key)

    def put_back(self, request: Request) -> None:
        """Queue a preempted request at the place it had."""
        insort(self._requests, request, key=_queue_key)

    def pop(self, index: int) -> Request:
        """Take the request at a position."""
        return self._requests.pop(index)

    def remove(self, request: Request) -> None:
        """Take a request out wherever it stands; raises ValueError if it is not queued."""
        index = bisect_left(self._requests, request.queue_key, key=_queue_key)
        if index == len(self._requests) or self._requests[index] is not request:
            raise ValueError(f"request {request.request_id!r} is not in the queue")
        del self._requests[index]
