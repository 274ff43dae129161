"""Waiting requests in the order in which they should start."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from operator import attrgetter

from deepinfer.request import Request

_queue_key = attrgetter("queue_key")
_MAX_CLIENTS = 1024


class RequestQueue:
    """Ordered by priority, then by fair share of the clients, then by arrival. Who comes back keeps the place it had.

    Fair share is start-time fair queueing: each client has a line of its own, in which a request starts where the one
    before it ends, counted in seconds of computation. The queue's virtual time is the start of the last request that
    was let in; who has been idle joins there, without credit for the time away.
    """

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._by_arrival: dict[str, Request] = {}
        self._num_arrivals = 0
        self._virtual_time = 0.0
        self._line_ends: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> Request:
        return self._requests[index]

    @property
    def longest_waiting(self) -> Request:
        """The request that was queued first; the queue must not be empty."""
        return next(iter(self._by_arrival.values()))

    def add(self, request: Request, estimated_cost: float = 0.0) -> None:
        """Queue a request for the first time; `estimated_cost` in seconds is charged to its client."""
        self._num_arrivals += 1
        start = max(self._virtual_time, self._line_ends.pop(request.client_key, 0.0))
        self._line_ends[request.client_key] = start + estimated_cost  # the last in order of use
        if len(self._line_ends) > _MAX_CLIENTS:
            del self._line_ends[next(iter(self._line_ends))]
        request.estimated_cost = estimated_cost
        request.queue_key = (request.sampling_params.priority, start, self._num_arrivals)
        self.put_back(request)

    def put_back(self, request: Request) -> None:
        """Queue a preempted request at the place it had."""
        insort(self._requests, request, key=_queue_key)
        self._by_arrival[request.request_id] = request

    def settle(self, request: Request, cost: float) -> None:
        """Correct what a client was charged once the cost of a request is known."""
        end = self._line_ends.get(request.client_key)
        if end is not None:
            self._line_ends[request.client_key] = max(0.0, end + cost - request.estimated_cost)

    def let_in(self, index: int) -> Request:
        """Take the request at a position to start it."""
        request = self._requests.pop(index)
        del self._by_arrival[request.request_id]
        self._virtual_time = max(self._virtual_time, request.queue_key[1])
        return request

    def remove(self, request: Request) -> None:
        """Take a request out that will not start."""
        del self._requests[self.index(request)]
        del self._by_arrival[request.request_id]

    def index(self, request: Request) -> int:
        """Position of a queued request; raises ValueError if it is not queued."""
        index = bisect_left(self._requests, request.queue_key, key=_queue_key)
        if index == len(self._requests) or self._requests[index] is not request:
            raise ValueError(f"request {request.request_id!r} is not in the queue")
        return index


def compute_longest_wait(prefilling: Iterable[Request], waiting: RequestQueue, now: float) -> float:
    """Seconds that the oldest request without a first token has been there; 0.0 without one."""
    arrivals = [request.arrival_time for request in prefilling if request.first_token_time is None]
    if waiting and waiting.longest_waiting.first_token_time is None:
        arrivals.append(waiting.longest_waiting.arrival_time)
    return now - min(arrivals) if arrivals else 0.0
