"""What happens when blocks run short."""

import pytest

from deepinfer import FinishReason, RequestError, SamplingParams


def test_a_request_that_does_not_fit_now_is_overtaken_by_one_that_does(make_bench):
    bench = make_bench(num_blocks=6, max_num_batched_tokens=96, max_model_len=96)
    bench.add("big", [1] * 80, max_tokens=10)
    bench.plan()  # holds 5 blocks
    bench.add("big again", [1] * 70 + [2] * 20, max_tokens=2)  # needs a block beyond those it shares
    assert list(bench.plan()) == ["big"]
    assert bench.scheduler.num_waiting == 1
    bench.run()
    assert bench.outputs["big again"] == bench.expected([1] * 70 + [2] * 20, max_tokens=2)


@pytest.mark.parametrize("max_overtakes", [1, 3, 8])
def test_overtaking_is_bounded(make_bench, max_overtakes):
    bench = make_bench(num_blocks=10, max_num_seqs=2, max_model_len=160, max_overtakes=max_overtakes)
    bench.add("old", [9] * 80, max_tokens=1)
    bench.run()  # leaves 5 blocks
    bench.add("running", [1] * 50, max_tokens=14, use_prefix_cache=False)
    bench.plan()  # holds 4, so that one is free
    bench.add("repeat", [9] * 80 + [8] * 10, max_tokens=2)  # would hold the 5 and needs one more
    for number in range(20):
        bench.add(f"small{number}", [number + 10] * 3, max_tokens=1, use_prefix_cache=False)
    order = []
    while bench.core.has_work:
        order += [name for name in bench.plan() if name not in order]
    assert order.index("repeat") == 1 + max_overtakes
    assert bench.last["repeat"].num_cached_tokens == 80
    assert bench.last["running"].stats.num_preemptions == 0


def test_preempted_requests_end_with_the_same_output(make_bench):
    bench = make_bench(num_blocks=8, max_num_seqs=8, max_model_len=128)
    prompts = {f"r{number}": [number] * 12 for number in range(8)}
    for name, prompt in prompts.items():
        bench.add(name, prompt, max_tokens=60)
    bench.run()
    preempted = [name for name in prompts if bench.last[name].stats.num_preemptions]
    assert len(preempted) >= 4
    for name, prompt in prompts.items():
        assert bench.outputs[name] == bench.expected(prompt, max_tokens=60)
        assert bench.last[name].finish_reason is FinishReason.LENGTH
    assert bench.scheduler.cache.num_available_blocks == 8


@pytest.mark.parametrize("caching", [True, False])
def test_reuse_eviction_and_repeat_give_the_output_of_a_lone_request(make_bench, caching):
    bench = make_bench(num_blocks=10, caching=caching, max_model_len=160)
    first, second = [1] * 96, [2] * 144
    for number in range(20):
        for name, prompt in (("a", first), ("b", first), ("c", second), ("d", first)):
            bench.add(f"{name}{number}", prompt, max_tokens=8)
            bench.run()
            assert bench.outputs[f"{name}{number}"] == bench.expected(prompt, max_tokens=8)
        assert bench.last[f"b{number}"].num_cached_tokens == (95 if caching else 0)
    assert bench.scheduler.cache.num_available_blocks == 10


def test_a_lone_request_may_use_every_block(make_bench):
    bench = make_bench(num_blocks=4, max_model_len=64)
    bench.add("a", [1] * 63, max_tokens=1)
    bench.run()
    bench.add("b", [1] * 63, max_tokens=1)  # the blocks it could reuse are all there are
    bench.run()
    bench.add("c", [2] * 60, max_tokens=4)
    bench.run()
    assert bench.outputs["a"] == bench.outputs["b"] == bench.expected([1] * 63, max_tokens=1)
    assert bench.outputs["c"] == bench.expected([2] * 60, max_tokens=4)


def test_a_request_beyond_all_blocks_is_refused(make_bench):
    bench = make_bench(num_blocks=4, max_model_len=64)
    request = bench.core.rules.make_request("a", [1] * 60, SamplingParams(max_tokens=4), arrival_time=0.0)
    request.max_output_tokens = 100
    with pytest.raises(RequestError, match="need 10 KV blocks, but there are 4"):
        bench.core.add_request(request)
    assert not bench.core.has_work


def test_starting_somebody_leaves_one_block_for_each_who_runs(make_bench):
    bench = make_bench(num_blocks=6, max_model_len=96)
    bench.add("running", [1] * 60, max_tokens=20)
    bench.plan()  # holds 4
    bench.add("new", [2] * 40)
    assert bench.plan() == {"running": 1, "new": 16}


def test_nobody_starts_while_a_prefill_waits_for_blocks(make_bench):
    bench = make_bench(num_blocks=6, max_num_batched_tokens=32, max_model_len=96)
    bench.add("decoding", [1] * 17, max_tokens=60)
    bench.plan()
    bench.add("prefilling", [2] * 90)
    while bench.scheduler.cache.num_available_blocks:
        bench.plan()
    bench.add("new", [3] * 4)
    assert "new" not in bench.plan()
    bench.run()
    assert bench.outputs["prefilling"] == bench.expected([2] * 90, max_tokens=5)
