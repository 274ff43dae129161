"""Who starts when several clients, priorities and long waits compete."""

from array import array

import pytest

from deepinfer import SamplingParams
from deepinfer.request import Request
from deepinfer.scheduler import RequestQueue


def make_request(name, client="", priority=0):
    return Request(
        request_id=name,
        prompt_token_ids=array("I", [1]),
        sampling_params=SamplingParams(seed=0, priority=priority),
        eos_token_ids=frozenset(),
        arrival_time=0.0,
        max_output_tokens=1,
        client_key=client,
    )


def drain(queue):
    names = []
    while len(queue):
        names.append(queue.let_in(0).request_id)
    return names


def test_a_client_with_few_requests_does_not_wait_for_one_with_many():
    queue = RequestQueue()
    for number in range(100):
        queue.add(make_request(f"many{number}", "many"), 1.0)
    for _ in range(10):
        queue.let_in(0)
    queue.add(make_request("few", "few"), 1.0)
    assert "few" in drain(queue)[:2]


def test_shares_are_equal_in_cost_not_in_number():
    queue = RequestQueue()
    for number in range(40):
        queue.add(make_request(f"small{number}", "small"), 1.0)
    for number in range(10):
        queue.add(make_request(f"big{number}", "big"), 4.0)
    first = drain(queue)[:20]
    assert sum(name.startswith("big") for name in first) == pytest.approx(4, abs=1)


def test_time_away_gives_no_credit():
    queue = RequestQueue()
    for number in range(50):
        queue.add(make_request(f"a{number}", "a"), 1.0)
        queue.let_in(0)
    for number in range(10):
        queue.add(make_request(f"a{50 + number}", "a"), 1.0)
        queue.add(make_request(f"b{number}", "b"), 1.0)
    first = drain(queue)[:10]
    assert 4 <= sum(name.startswith("b") for name in first) <= 6


def test_settling_charges_what_a_request_really_cost():
    queue = RequestQueue()
    cheap, dear = make_request("c0", "cheap"), make_request("d0", "dear")
    for request in (cheap, dear):
        queue.add(request, 1.0)
    for _ in range(2):
        queue.let_in(0)
    queue.settle(cheap, 1.0)
    queue.settle(dear, 6.0)
    for number in range(1, 8):
        queue.add(make_request(f"d{number}", "dear"), 1.0)
        queue.add(make_request(f"c{number}", "cheap"), 1.0)
    assert drain(queue)[:5] == ["c1", "c2", "c3", "c4", "c5"]


def test_one_client_is_served_in_order_of_arrival_whatever_its_requests_cost():
    queue = RequestQueue()
    for number, cost in enumerate((5.0, 0.1, 3.0, 0.0, 0.0, 2.0)):
        queue.add(make_request(f"r{number}"), cost)
    assert drain(queue) == [f"r{number}" for number in range(6)]


def test_the_memory_of_clients_is_bounded():
    queue = RequestQueue()
    for number in range(5000):
        queue.add(make_request(f"r{number}", f"client{number}"), 1e-3)
        queue.let_in(0)
    assert len(queue._line_ends) <= 1024


def test_long_waits_get_every_second_admission(make_bench):
    bench = make_bench(max_num_seqs=1, max_wait_seconds=10.0)
    for number in range(3):
        bench.add(f"late{number}", [number] * 4, priority=9, max_tokens=1, age=60.0)
    for number in range(5):
        bench.add(f"urgent{number}", [10 + number] * 4, priority=0, max_tokens=1)
    order = [next(iter(bench.plan())) for _ in range(8)]
    assert order == ["late0", "urgent0", "late1", "urgent1", "late2", "urgent2", "urgent3", "urgent4"]


def test_every_end_settles_what_a_request_really_cost(make_bench, monkeypatch):
    bench = make_bench()
    settled = {}
    queue = bench.scheduler._waiting
    monkeypatch.setattr(queue, "settle", lambda request, cost: settled.update({request.request_id: cost}))
    bench.add("short", [1] * 20, max_tokens=1, client_key="x")
    bench.add("long", [2] * 20, max_tokens=90, client_key="x")
    bench.add("aborted", [3] * 20, max_tokens=90, client_key="y")
    bench.plan()
    bench.core.abort_request("aborted")
    bench.run()
    assert settled.keys() == {"short", "long", "aborted"}
    assert 0.0 < settled["short"] < settled["long"]
