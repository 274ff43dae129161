"""Faults that were reported against other engines, by their numbers in the collection of public bug reports."""

import random

import pytest

from deepinfer import FinishReason, SamplingParams
from deepinfer.errors import RequestError
from deepinfer.executor.scripted import ScriptedExecutor
from deepinfer.testing.foreseen_drafts import ForeseenDrafts

EOS = frozenset({0})


def ask(core, name, prompt, *, max_tokens=8, steps=None, **options):
    """Serve one request, or run `steps` of it; returns its tokens and the tokens found in the cache."""
    params = SamplingParams(**{"temperature": 0.0, "max_tokens": max_tokens, **options})
    core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    tokens, num_cached = [], 0
    while core.has_work and steps != 0:
        steps = None if steps is None else steps - 1
        for output in core.step().outputs:
            tokens += output.new_token_ids
            num_cached = output.num_cached_tokens
            assert output.error_message is None
    return tokens, num_cached


def expected(core, prompt, max_tokens=8):
    return core.executor.predict(prompt, SamplingParams(temperature=0.0, max_tokens=max_tokens), EOS)


def is_clean(core):
    pool = core.scheduler.cache.pool
    return pool.num_available == pool.num_blocks


def test_b24_reuse_and_eviction_in_a_small_pool(make_core):
    """(1) a prompt of 0.6 of the pool, (2) again, (3) another of 0.9, (4) the first again, 20 times over."""
    core = make_core(num_blocks=20, max_model_len=310)
    rng = random.Random(0)
    first, other = ([rng.randrange(1, 200) for _ in range(length)] for length in (192, 288))
    for number in range(20):
        for step, prompt in enumerate((first, first, other, first)):
            tokens, num_cached = ask(core, f"{number}-{step}", prompt)
            assert tokens == expected(core, prompt)
            assert is_clean(core)
            if step == 1:
                assert num_cached == len(prompt) - 1
            else:
                assert num_cached <= len(prompt) - 1


def test_b24_eight_requests_in_a_pool_that_preempts_half_of_them(make_core):
    core = make_core(num_blocks=12, max_model_len=170)
    prompts = {f"r{number}": [number + 1] * 30 for number in range(8)}
    params = SamplingParams(temperature=0.0, max_tokens=60, ignore_eos=True)
    for name, prompt in prompts.items():
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    tokens = {name: [] for name in prompts}
    preempted = set()
    while core.has_work:
        for output in core.step().outputs:
            tokens[output.request_id] += output.new_token_ids
            if output.stats is not None and output.stats.num_preemptions:
                preempted.add(output.request_id)
    assert len(preempted) >= 4
    assert tokens == {name: core.executor.predict(prompt, params) for name, prompt in prompts.items()}
    assert is_clean(core)


def test_b24_a_salt_or_another_first_token_shares_nothing(make_core):
    core = make_core()
    prompt = [5] * 100
    ask(core, "first", prompt)
    assert ask(core, "salted", prompt, cache_salt="a")[1] == 0
    assert ask(core, "other", [6, *prompt[1:]])[1] == 0
    assert ask(core, "opted out", prompt, use_prefix_cache=False)[1] == 0
    assert ask(core, "again", prompt)[1] == 99
    assert ask(core, "salted again", prompt, cache_salt="a")[1] == 99


def test_b31_a_prompt_that_differs_in_its_last_tokens_reuses_all_before_them(make_core):
    rng = random.Random(1)
    prompt = [rng.randrange(1, 200) for _ in range(10_000)]
    changed = [*prompt[:-20], *(token_id % 199 + 1 for token_id in prompt[-20:])]
    options = {"num_blocks": 200, "block_size": 64, "max_model_len": 10_100, "max_num_batched_tokens": 4096}
    core = make_core(**options)
    answer, _ = ask(core, "first", prompt, max_tokens=50, ignore_eos=True)
    tokens, num_cached = ask(core, "changed", changed)
    assert num_cached == len(prompt) - 20
    assert tokens == ask(make_core(**options), "cold", changed)[0] == expected(core, changed)
    turn = [*prompt, *answer, 7, 8, 9]
    tokens, num_cached = ask(core, "next turn", turn)
    assert num_cached >= len(prompt) + len(answer) - 1
    assert tokens == expected(core, turn)


@pytest.mark.parametrize("kind", ["right", "mixed"])
@pytest.mark.parametrize("max_tokens", [5, 60])
def test_b32_nothing_stays_of_what_was_accepted_beyond_the_stop(make_core, kind, max_tokens):
    """A draft is right far beyond a stop token or the bound on the output: only what came before counts."""
    foreseen = {}
    core = make_core(max_model_len=250)
    core.scheduler._drafts = ForeseenDrafts(foreseen, kind, vocab_size=200)
    prompt = [3] * 40
    free = core.executor.predict(prompt, SamplingParams(temperature=0.0, max_tokens=60, ignore_eos=True))
    foreseen |= {"turn": free, "next": free}
    stop = free[9]
    tokens, _ = ask(core, "turn", prompt, max_tokens=max_tokens, ignore_eos=True, stop_token_ids=(stop,))
    assert tokens == free[: min(max_tokens, free.index(stop) + 1)]
    assert is_clean(core)
    turn = [*prompt, *tokens, 11, 12]
    foreseen["next"] = expected(core, turn)
    tokens_2, num_cached = ask(core, "next", turn)
    assert len(turn) - 3 <= num_cached <= len(turn) - 2, "all of the turn, at most without its last token"
    assert tokens_2 == expected(core, turn)
    assert is_clean(core)


@pytest.mark.parametrize("steps", [1, 7])
def test_b34_leaving_in_mid_prefill_ends_within_a_chunk_and_keeps_what_is_done(make_core, steps):
    core = make_core(num_blocks=200, max_model_len=3000, max_num_batched_tokens=64)
    prompt = [number % 150 + 1 for number in range(2500)]
    ask(core, "leaves", prompt, steps=steps)
    core.abort_request("leaves")
    step = core.step()
    assert [output.finish_reason for output in step.outputs] == [FinishReason.ABORT]
    assert not core.has_work
    assert is_clean(core)
    tokens, num_cached = ask(core, "retry", prompt)
    assert num_cached == steps * 64
    assert tokens == expected(core, prompt)


def test_b34_leaving_the_queue_leaves_nothing(make_core):
    core = make_core(max_num_seqs=1)
    for number in range(7):
        params = SamplingParams(temperature=0.0, max_tokens=5)
        core.add_request(core.rules.make_request(f"r{number}", [1] * 30, params, arrival_time=0.0))
    core.step()
    for number in range(1, 7):
        core.abort_request(f"r{number}")
    assert core.scheduler.num_waiting == 0
    ends = []
    while core.has_work:
        ends += [output.finish_reason for output in core.step().outputs if output.finish_reason is not None]
    assert ends.count(FinishReason.ABORT) == 6
    assert is_clean(core)


@pytest.mark.parametrize("kind", ["right", "wrong", "mixed"])
@pytest.mark.parametrize("max_num_seqs", [1, 8])
def test_b37_a_hundred_greedy_prompts_are_the_same_with_drafts(make_core, kind, max_num_seqs):
    rng = random.Random(2)
    prompts = {f"r{n}": rng.choices(range(1, 9), k=rng.randrange(1, 60)) for n in range(100)}
    core = make_core(max_num_seqs=max_num_seqs)
    wanted = {name: expected(core, prompt, 20) for name, prompt in prompts.items()}
    core.scheduler._drafts = ForeseenDrafts(wanted, kind, vocab_size=200)
    for name, prompt in prompts.items():
        params = SamplingParams(temperature=0.0, max_tokens=20)
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    tokens = {name: [] for name in prompts}
    num_accepted = 0
    while core.has_work:
        step = core.step()
        num_accepted += step.stats.num_accepted_tokens if step.stats else 0
        for output in step.outputs:
            tokens[output.request_id] += output.new_token_ids
    assert tokens == wanted
    assert kind == "wrong" or num_accepted > 100


class OneBadRow(ScriptedExecutor):
    """The row of a prompt that begins with token 13 has no finite logits once it has three outputs."""

    def __init__(self, **options):
        super().__init__(choose_token=self._choose, **options)

    def _choose(self, tokens, params):
        if tokens[0] == 13 and len(tokens) == 132:
            raise RequestError("the model computed logits that are not finite")
        return self._choose_by_hash(tokens, params)


def test_b40_one_bad_row_fails_alone(make_core):
    core = make_core(
        executor_type=OneBadRow, num_blocks=64, block_size=128, max_model_len=4200, max_num_batched_tokens=512
    )
    prompts = {f"r{length}": [length % 190] * length for length in (1, 127, 128, 129, 4096)}
    prompts["bad"] = [13] * 129
    params = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)
    for name, prompt in prompts.items():
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    tokens, ends = {name: [] for name in prompts}, {}
    while core.has_work:
        for output in core.step().outputs:
            tokens[output.request_id] += output.new_token_ids
            ends[output.request_id] = (output.finish_reason, output.error_message)
    assert ends.pop("bad") == (FinishReason.ERROR, "the model computed logits that are not finite")
    assert len(tokens.pop("bad")) == 3
    assert set(ends.values()) == {(FinishReason.LENGTH, None)}
    for name, output in tokens.items():
        assert output == core.executor.predict(prompts[name], params)
    assert is_clean(core)
    assert ask(core, "like the bad one", [13] * 129, max_tokens=2)[1] == 0, "its blocks are not lent to others"
