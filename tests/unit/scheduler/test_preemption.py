from array import array

from deepinfer import SamplingParams
from deepinfer.request import Request
from deepinfer.scheduler.preemption import choose_victim


def make_request(name, arrival, *, num_outputs=0, priority=0, num_preemptions=0):
    return Request(
        request_id=name,
        prompt_token_ids=array("I", [1]),
        sampling_params=SamplingParams(seed=0, priority=priority),
        eos_token_ids=frozenset(),
        arrival_time=0.0,
        max_output_tokens=1,
        output_token_ids=[1] * num_outputs,
        queue_key=(priority, 0.0, arrival),
        num_preemptions=num_preemptions,
    )


def test_longest_output_first():
    requests = [make_request("a", 1, num_outputs=5), make_request("b", 2, num_outputs=9)]
    assert choose_victim(requests).request_id == "b"


def test_who_has_given_nothing_to_a_reader_goes_before_those_who_have():
    requests = [make_request("a", 1, num_outputs=5), make_request("b", 2), make_request("c", 3)]
    assert choose_victim(requests).request_id == "c"


def test_lowest_priority_goes_before_everything_else():
    requests = [make_request("a", 1, num_outputs=500), make_request("b", 2, num_outputs=1, priority=3)]
    assert choose_victim(requests).request_id == "b"


def test_nobody_is_preempted_twice_while_others_were_not_at_all():
    requests = [make_request("a", 1, num_outputs=500, num_preemptions=1), make_request("b", 2, num_outputs=1)]
    assert choose_victim(requests).request_id == "b"


def test_nobody_to_choose_from():
    assert choose_victim([]) is None
