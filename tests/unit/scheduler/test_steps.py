"""What goes into one step."""

import pytest

from deepinfer import FinishReason


def test_decode_rows_come_first_and_prefill_fills_the_rest(make_bench):
    bench = make_bench(max_num_batched_tokens=20)
    bench.add("a", [1] * 10)
    assert bench.plan() == {"a": 10}
    bench.add("b", [2] * 50)
    assert bench.plan() == {"a": 1, "b": 19}
    assert bench.plan() == {"a": 1, "b": 19}
    assert bench.plan() == {"a": 1, "b": 12}
    assert bench.plan() == {"a": 1, "b": 1}


def test_several_prompts_share_one_step(make_bench):
    bench = make_bench(max_num_batched_tokens=64)
    for name, length in (("a", 10), ("b", 20), ("c", 60)):
        bench.add(name, [ord(name)] * length)
    assert bench.plan() == {"a": 10, "b": 20, "c": 34}


def test_no_more_requests_run_than_allowed(make_bench):
    bench = make_bench(max_num_seqs=3)
    for number in range(5):
        bench.add(f"r{number}", [number] * 4)
    assert list(bench.plan()) == ["r0", "r1", "r2"]
    assert bench.scheduler.num_waiting == 2


def test_a_request_holds_blocks_only_for_what_is_scheduled(make_bench):
    bench = make_bench(max_num_batched_tokens=16, num_blocks=64)
    bench.add("a", [1] * 200)
    bench.plan()
    assert bench.scheduler.cache.num_available_blocks == 63
    bench.plan()
    assert bench.scheduler.cache.num_available_blocks == 62


def test_exact_repeat_recomputes_one_token(make_bench):
    bench = make_bench()
    bench.add("a", [1] * 40)
    bench.run()
    bench.add("b", [1] * 40)
    assert bench.plan() == {"b": 1}
    assert bench.last["b"].num_cached_tokens == 39
    bench.run()
    assert bench.outputs["a"] == bench.outputs["b"] == bench.expected([1] * 40, max_tokens=5)


def test_equal_prompts_at_once_are_computed_once(make_bench):
    bench = make_bench(max_num_batched_tokens=64)
    for name in "abc":
        bench.add(name, [1] * 40)
    assert bench.plan() == {"a": 40}
    assert bench.plan() == {"a": 1, "b": 1, "c": 1}


def test_waiting_for_an_equal_prefix_ends_with_its_owner(make_bench):
    bench = make_bench(max_num_batched_tokens=16)
    bench.add("a", [1] * 100)
    bench.plan()
    bench.add("b", [1] * 100)
    assert bench.plan() == {"a": 16}
    bench.core.abort_request("a")
    assert bench.plan() == {"b": 16}
    assert bench.last["a"].finish_reason is FinishReason.ABORT
    bench.run()
    assert bench.outputs["b"] == bench.expected([1] * 100, max_tokens=5)


def test_next_turn_computes_only_what_is_new(make_bench):
    bench = make_bench()
    bench.add("a", [1] * 40, max_tokens=20)
    bench.run()
    bench.add("b", [1] * 40 + bench.outputs["a"] + [5, 6])
    assert bench.plan() == {"b": 3}  # the last token of the answer was never computed


def test_priority_orders_the_queue_and_ties_go_to_the_first(make_bench):
    bench = make_bench(max_num_seqs=1)
    for name, priority in (("a", 1), ("b", 0), ("c", 0), ("d", -1)):
        bench.add(name, [ord(name)] * 4, priority=priority, max_tokens=1)
    assert [list(bench.plan()) for _ in range(4)] == [["d"], ["b"], ["c"], ["a"]]


@pytest.mark.parametrize("budget", [8, 9, 16, 17, 64, 512])
def test_output_does_not_depend_on_the_chunk_size(make_bench, budget):
    bench = make_bench(max_num_batched_tokens=budget)
    prompts = {f"r{number}": [number] * (1 + 23 * number) for number in range(6)}
    for name, prompt in prompts.items():
        bench.add(name, prompt, max_tokens=20)
    bench.run()
    for name, prompt in prompts.items():
        assert bench.outputs[name] == bench.expected(prompt, max_tokens=20)
