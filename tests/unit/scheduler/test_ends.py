"""How requests end."""

import pytest

from deepinfer import FinishReason, RequestError


def choose_position(tokens, params):
    """Token id = number of tokens so far."""
    return len(tokens)


def test_eos_ends_and_is_reported(make_bench):
    bench = make_bench(choose_token=lambda tokens, params: 0 if len(tokens) == 6 else 5)
    bench.add("a", [1] * 4, max_tokens=10, ignore_eos=False)
    bench.run()
    assert bench.outputs["a"] == [5, 5, 0]
    assert bench.last["a"].finish_reason is FinishReason.STOP
    assert bench.last["a"].stop_token_id == 0


def test_ignore_eos_goes_on(make_bench):
    bench = make_bench(choose_token=lambda tokens, params: 0)
    bench.add("a", [1] * 4, max_tokens=3)
    bench.run()
    assert bench.outputs["a"] == [0, 0, 0]
    assert bench.last["a"].finish_reason is FinishReason.LENGTH
    assert bench.last["a"].stop_token_id is None


def test_stop_token_ids_end_even_with_ignore_eos(make_bench):
    bench = make_bench(choose_token=choose_position)
    bench.add("a", [1] * 4, max_tokens=10, stop_token_ids=(6, 7))
    bench.run()
    assert bench.outputs["a"] == [4, 5, 6]
    assert bench.last["a"].stop_token_id == 6


def test_context_bounds_the_output(make_bench):
    bench = make_bench(max_model_len=32)
    bench.add("a", [1] * 28, max_tokens=None)
    bench.run()
    assert len(bench.outputs["a"]) == 4
    assert bench.last["a"].finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("length", [1, 2, 16, 17, 100])
def test_max_tokens_0_gives_prompt_logprobs_and_no_token(make_bench, length):
    bench = make_bench(max_num_batched_tokens=10)
    bench.add("a", [3] * length, max_tokens=0, prompt_logprobs=2)
    bench.run()
    output = bench.last["a"]
    assert output.new_token_ids == []
    assert output.finish_reason is FinishReason.LENGTH
    assert [len(entry.top) for entry in output.prompt_logprobs] == [2] * (length - 1)
    assert bench.scheduler.cache.num_available_blocks == 64


def test_prompt_logprobs_are_complete_although_the_prompt_is_cached(make_bench):
    bench = make_bench()
    bench.add("a", list(range(50)))
    bench.run()
    bench.add("b", list(range(50)), prompt_logprobs=0)
    bench.run()
    bench.add("c", list(range(50)), prompt_logprobs=0)
    bench.run()
    assert bench.last["b"].num_cached_tokens == 0
    assert len(bench.outputs["b"]) == 5


def test_prompt_logprobs_survive_preemption(make_bench):
    def entries_of(bench):
        collected = []
        while bench.core.has_work:
            for output in bench.core.step().outputs:
                if output.prompt_logprobs is not None:
                    collected.append(output.prompt_logprobs)
        return collected

    alone = make_bench(max_num_batched_tokens=16)
    alone.add("a", list(range(90)), prompt_logprobs=1, max_tokens=3)
    (expected,) = entries_of(alone)
    assert [entry.token_id for entry in expected] == list(range(1, 90))

    # Decoding requests with more urgency take the blocks of the prefill in progress.
    crowded = make_bench(num_blocks=8, max_num_batched_tokens=16, max_model_len=128)
    for name in "xy":
        crowded.add(name, [ord(name)] * 10, max_tokens=60, priority=-1)
    crowded.plan()
    crowded.add("a", list(range(90)), prompt_logprobs=1, max_tokens=3)
    (got,) = entries_of(crowded)
    assert got == expected


def test_logprobs_stand_beside_their_tokens(make_bench):
    bench = make_bench()
    bench.add("a", [1] * 4, logprobs=3, max_tokens=4)
    entries = []
    while bench.core.has_work:
        for output in bench.core.step().outputs:
            entries += output.logprobs
            assert [entry.token_id for entry in output.logprobs] == output.new_token_ids
    assert len(entries) == 4


def test_one_bad_row_fails_alone_and_its_contents_are_forgotten(make_bench):
    def choose(tokens, params):
        if tokens[0] == 7 and len(tokens) == 20:
            raise RequestError("the model computed logits that are not finite")
        return 5

    bench = make_bench(choose_token=choose)
    for first in (6, 7, 8):
        bench.add(f"r{first}", [first] * 18, max_tokens=8)
    bench.run()
    assert bench.last["r7"].finish_reason is FinishReason.ERROR
    assert bench.last["r7"].error_message == "the model computed logits that are not finite"
    assert bench.outputs["r7"] == [5, 5]
    assert bench.outputs["r6"] == bench.outputs["r8"] == [5] * 8
    bench.add("again", [7] * 18, max_tokens=1)
    bench.run()
    assert bench.last["again"].num_cached_tokens == 0
    assert bench.scheduler.cache.num_available_blocks == 64


@pytest.mark.parametrize("num_steps", [0, 1, 2, 3, 4, 6])
def test_abort_gives_back_every_block_within_one_step(make_bench, num_steps):
    bench = make_bench(max_num_batched_tokens=20, max_num_seqs=2)
    bench.add("a", [1] * 50, max_tokens=100)
    bench.add("b", [2] * 10, max_tokens=100)
    bench.add("c", [3] * 10, max_tokens=100)
    for _ in range(num_steps):
        bench.plan()
    for name in "abc":
        bench.core.abort_request(name)
        bench.core.abort_request(name)
    assert bench.scheduler.cache.num_available_blocks == 64
    bench.run(max_steps=1)
    assert {bench.last[name].finish_reason for name in "abc"} == {FinishReason.ABORT}
    assert not bench.core.has_work
    bench.add("a", [1] * 50, max_tokens=1)  # the id is free again, and the executor has dropped the old request
    bench.run()
    assert bench.executor.num_known_requests <= 1


def test_finished_prefill_blocks_stay_for_the_retry(make_bench):
    bench = make_bench(max_num_batched_tokens=20)
    bench.add("a", list(range(100)), max_tokens=5)
    bench.plan()
    bench.plan()
    bench.core.abort_request("a")
    bench.add("b", list(range(100)), max_tokens=5)
    bench.run()
    assert bench.last["b"].num_cached_tokens == 40


def test_duplicate_ids_are_refused_until_the_first_has_ended(make_bench):
    bench = make_bench()
    bench.add("a", [1])
    with pytest.raises(RequestError, match="'a' is in use"):
        bench.add("a", [2])
    bench.run()
    bench.add("a", [2])
    bench.run()


def test_stats_come_with_the_last_output_only(make_bench):
    bench = make_bench()
    bench.add("a", [1] * 30, max_tokens=3)
    seen = []
    while bench.core.has_work:
        seen += [output.stats for output in bench.core.step().outputs]
    assert seen[:-1] == [None, None]
    stats = seen[-1]
    assert (stats.num_prompt_tokens, stats.num_cached_tokens, stats.num_output_tokens) == (30, 0, 3)
    assert min(stats.queue_seconds, stats.prefill_seconds, stats.decode_seconds) >= 0.0
