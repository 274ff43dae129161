import subprocess
import sys
from array import array

import pytest

from deepinfer import SamplingParams
from deepinfer.errors import OutOfBlocksError
from deepinfer.kvcache import KVCacheManager
from deepinfer.request import Request


def make_request(tokens, output=(), salt="", use_prefix_cache=True, cache_class="normal"):
    return Request(
        request_id="r",
        prompt_token_ids=array("I", tokens),
        sampling_params=SamplingParams(
            seed=0, cache_salt=salt, use_prefix_cache=use_prefix_cache, cache_class=cache_class
        ),
        eos_token_ids=frozenset(),
        arrival_time=0.0,
        max_output_tokens=10,
        output_token_ids=list(output),
    )


def make_manager(num_blocks=8, **options):
    return KVCacheManager(num_blocks=num_blocks, block_size=16, **options)


def compute(manager, request, num_tokens=None):
    """Pretend that the request's tokens were computed."""
    request.num_computed_tokens = request.num_tokens if num_tokens is None else num_tokens
    manager.allocate(request, request.num_computed_tokens)
    manager.commit(request)


def serve(manager, tokens, salt=""):
    request = make_request(tokens, salt=salt)
    compute(manager, request)
    manager.free(request)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 31, 32, 33, 100])
def test_exact_repeat_finds_all_but_one_token(length):
    manager = make_manager()
    serve(manager, range(length))
    hit = manager.find_prefix(make_request(range(length)), length - 1)
    assert hit.num_tokens == length - 1
    assert len(hit.block_ids) == (length - 1) // 16


@pytest.mark.parametrize("divergence", [0, 1, 15, 16, 17, 40, 63])
def test_hit_ends_exactly_where_prompts_diverge(divergence):
    manager = make_manager()
    serve(manager, [1] * 64)
    hit = manager.find_prefix(make_request([1] * divergence + [2] * 40), 1000)
    assert hit.num_tokens == divergence


def test_output_is_found_by_the_next_turn():
    manager = make_manager()
    request = make_request(range(20), output=range(100, 130))
    compute(manager, request, 49)  # the last token was sampled, not computed
    manager.free(request)
    hit = manager.find_prefix(make_request([*range(20), *range(100, 130), 7, 7, 7]), 1000)
    assert hit.num_tokens == 49


def test_other_salt_finds_nothing():
    manager = make_manager()
    serve(manager, range(40), salt="a")
    assert manager.find_prefix(make_request(range(40), salt="b"), 39).num_tokens == 0
    assert manager.find_prefix(make_request(range(40), salt="a"), 39).num_tokens == 39


def test_prefix_equal_except_for_token_0_finds_nothing():
    manager = make_manager()
    serve(manager, range(40))
    assert manager.find_prefix(make_request([99, *range(1, 40)]), 39).num_tokens == 0


def test_disabled_cache_finds_and_keeps_nothing():
    manager = make_manager(enable_prefix_caching=False)
    serve(manager, range(40))
    assert manager.find_prefix(make_request(range(40)), 39).num_tokens == 0
    assert manager.pool.num_evictable == 0
    assert manager.num_available_blocks == 8


def test_a_request_may_stay_out_of_the_cache():
    manager = make_manager()
    private = make_request(range(40), use_prefix_cache=False)
    compute(manager, private)
    manager.free(private)
    assert manager.pool.num_evictable == 0
    serve(manager, range(40))
    assert manager.find_prefix(make_request(range(40), use_prefix_cache=False), 39).num_tokens == 0
    assert manager.find_prefix(make_request(range(40)), 39).num_tokens == 39


def test_blocks_of_a_running_request_are_shared_and_freed_once():
    manager = make_manager()
    first = make_request(range(40))
    compute(manager, first)
    manager.commit_tail(first)
    second = make_request(range(40))
    hit = manager.find_prefix(second, 39)
    source, destination = manager.allocate_prefix(second, hit)
    assert second.block_ids[:2] == first.block_ids[:2]
    assert source == first.block_ids[2]
    assert second.block_ids[2] == destination != source
    manager.release_copy_source(source)
    manager.free(first)
    assert [manager.pool.ref_count(b) for b in second.block_ids] == [1, 1, 1]
    manager.free(second)
    assert manager.num_available_blocks == 8


def test_eviction_takes_leaves_of_the_longest_unused_sequence_first():
    manager = make_manager(num_blocks=6)
    serve(manager, [1] * 48)
    serve(manager, [2] * 48)
    other = make_request([3] * 16)
    compute(manager, other)
    assert manager.find_prefix(make_request([1] * 48), 48).num_tokens == 32
    assert manager.find_prefix(make_request([2] * 48), 48).num_tokens == 48


def test_evicted_blocks_are_not_found():
    manager = make_manager(num_blocks=3)
    serve(manager, [1] * 48)
    big = make_request([2] * 48)
    compute(manager, big)
    assert manager.find_prefix(make_request([1] * 48), 48).num_tokens == 0


def test_discarded_contents_are_not_found_again():
    manager = make_manager()
    request = make_request(range(40))
    compute(manager, request)
    manager.free(request, discard=True)
    assert manager.find_prefix(make_request(range(40)), 39).num_tokens == 0
    assert manager.num_available_blocks == 8
    assert manager.pool.num_evictable == 0


def test_failed_allocation_takes_nothing():
    manager = make_manager(num_blocks=2)
    request = make_request(range(40))
    with pytest.raises(OutOfBlocksError, match="3 KV blocks are needed, 2 are available"):
        manager.allocate(request, 40)
    assert request.block_ids == []
    assert manager.num_available_blocks == 2


def test_many_salts_occupy_bounded_memory():
    manager = make_manager()
    for number in range(3000):
        manager.find_prefix(make_request(range(4), salt=str(number)), 4)
    assert len(manager._root_hashes) <= 1024


def test_no_torch_and_no_numpy_are_needed():
    program = "import sys, deepinfer.scheduler; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def serve_as(manager, tokens, cache_class):
    request = make_request(tokens, cache_class=cache_class)
    hit = manager.find_prefix(request, len(tokens) - 1)
    manager.allocate_prefix(request, hit)
    compute(manager, request)
    manager.free(request)


def found(manager, tokens):
    return manager.find_prefix(make_request(tokens), 1000).num_tokens


def test_blocks_of_a_longer_class_outlive_those_released_later():
    now = [0.0]
    manager = make_manager(num_blocks=6, ttl_seconds=(1.0, 10.0, 100.0), clock=lambda: now[0])
    long, normal, short, new = [1] * 32, [2] * 32, [3] * 32, [4] * 32
    for tokens, cache_class in ((long, "long"), (normal, "normal"), (short, "short")):
        now[0] += 1.0
        serve_as(manager, tokens, cache_class)
    serve_as(manager, new, "normal")
    assert [found(manager, tokens) for tokens in (long, normal, short)] == [32, 32, 0]
    now[0] += 10.0
    serve_as(manager, [5] * 32, "short")
    assert [found(manager, tokens) for tokens in (long, normal)] == [32, 0]
    now[0] += 200.0
    serve_as(manager, [6] * 64, "short")
    assert found(manager, long) == 32, "others whose time is over left before"


@pytest.mark.parametrize("order", [("short", "long"), ("long", "short")])
def test_leaves_go_before_the_beginnings_they_continue_whatever_their_class(order):
    now = [0.0]
    manager = make_manager(num_blocks=5, ttl_seconds=(1.0, 10.0, 100.0), clock=lambda: now[0])
    stem = [1] * 32
    for number, cache_class in enumerate(order):
        now[0] += 0.5
        serve_as(manager, stem + [10 + number] * 16, cache_class)
    leaf = {cache_class: stem + [10 + number] * 16 for number, cache_class in enumerate(order)}
    serve_as(manager, [7] * 32, "normal")  # one block is free, one has to go
    assert (found(manager, leaf["long"]), found(manager, leaf["short"])) == (48, 32)
    now[0] += 1000.0
    serve_as(manager, [8] * 48, "normal")
    assert found(manager, stem) == 32
    assert found(manager, leaf["long"]) == 32
