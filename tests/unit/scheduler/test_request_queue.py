from array import array

import pytest

from deepinfer import SamplingParams
from deepinfer.request import Request
from deepinfer.scheduler import RequestQueue


def make_request(name, priority=0):
    return Request(
        request_id=name,
        prompt_token_ids=array("I", [1]),
        sampling_params=SamplingParams(seed=0, priority=priority),
        eos_token_ids=frozenset(),
        arrival_time=0.0,
        max_output_tokens=1,
    )


def names(queue):
    return "".join(request.request_id for request in queue)


def test_priority_then_arrival():
    queue = RequestQueue()
    for name, priority in (("a", 0), ("b", -1), ("c", 0), ("d", 5), ("e", -1)):
        queue.add(make_request(name, priority))
    assert names(queue) == "beacd"


def test_a_request_that_comes_back_keeps_its_place():
    queue = RequestQueue()
    for name in "abc":
        queue.add(make_request(name))
    first = queue.let_in(0)
    assert names(queue) == "bc"
    queue.put_back(first)
    assert names(queue) == "abc"


def test_remove_from_anywhere():
    queue = RequestQueue()
    requests = [make_request(name) for name in "abc"]
    for request in requests:
        queue.add(request)
    queue.remove(requests[1])
    assert names(queue) == "ac"
    with pytest.raises(ValueError, match="'b' is not in the queue"):
        queue.remove(requests[1])
