"""Thousands of short requests with aborts at every point of their lives leave nothing behind."""

import gc
import random
import tracemalloc

from deepinfer import FinishReason, SamplingParams

NUM_REQUESTS = 5000
WARM_UP = 1000


def test_five_thousand_requests_with_aborts_leave_nothing_behind(make_core):
    core = make_core(num_blocks=48, max_num_batched_tokens=14, max_num_seqs=8, max_model_len=96)
    rng = random.Random(0)
    reasons = dict.fromkeys(FinishReason, 0)
    points = {"waiting": 0, "mid-prefill": 0, "decoding": 0, "after the end": 0}
    live = {}
    num_added = num_ended = 0
    memory_after_warm_up = 0
    tracemalloc.start()
    while num_ended < NUM_REQUESTS:
        while num_added < NUM_REQUESTS and len(live) < 16:
            request = core.rules.make_request(
                f"r{num_added}",
                rng.choices(range(3), k=rng.randrange(1, 60)),
                SamplingParams(temperature=0.0, max_tokens=rng.randrange(1, 12)),
                arrival_time=0.0,
            )
            core.add_request(request)
            live[request.request_id] = request
            num_added += 1
        for name in rng.sample(sorted(live), min(2, len(live))):
            request = live[name]
            if request.status.is_finished:
                continue
            if not request.block_ids:
                points["waiting"] += 1
            elif request.output_token_ids:
                points["decoding"] += 1
            else:
                points["mid-prefill"] += 1
            core.abort_request(name)
        for output in core.step().outputs:
            if output.finish_reason is not None:
                reasons[output.finish_reason] += 1
                del live[output.request_id]
                num_ended += 1
                core.abort_request(output.request_id)
                points["after the end"] += 1
        if num_ended >= WARM_UP and not memory_after_warm_up:
            gc.collect()
            memory_after_warm_up = tracemalloc.get_traced_memory()[0]
    gc.collect()
    growth = tracemalloc.get_traced_memory()[0] - memory_after_warm_up
    tracemalloc.stop()
    assert min(points.values()) > 200, points
    assert reasons[FinishReason.ERROR] == 0
    assert not core.has_work
    cache = core.scheduler.cache
    assert cache.num_available_blocks == cache.pool.num_blocks == 48
    assert [cache.pool.ref_count(block_id) for block_id in range(48)] == [0] * 48
    assert len(cache.cache) <= 48
    assert core.executor.num_known_requests <= 8
    assert growth < 20_000, f"{growth} bytes more than after the first {WARM_UP} requests"
