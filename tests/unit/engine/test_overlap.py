"""Steps planned while the one before computes give the same results, whatever ends, is aborted or preempted."""

import threading
import time
from pathlib import Path

import pytest

from deepinfer import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig, SpeculativeConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer.request import FinishReason
from deepinfer.scheduler.drafts import clip_drafts
from deepinfer.speculative import make_speculator
from deepinfer.testing.foreseen_drafts import KINDS, ForeseenDrafts

VOCAB_SIZE = 12
OPTIONS = {
    "greedy": {"temperature": 0.0},
    "seeded": {"seed": 5, "logprobs": 1},
    "stop id": {"temperature": 0.0, "stop_token_ids": (7, 8)},
    "ignore eos": {"temperature": 0.0, "ignore_eos": True},
    "no output": {"temperature": 0.0, "max_tokens": 0, "prompt_logprobs": 0},
    "one token": {"temperature": 0.0, "max_tokens": 1},
    "two tokens": {"temperature": 0.0, "max_tokens": 2, "prompt_logprobs": 1},
    "long": {"seed": 1, "max_tokens": 50, "ignore_eos": True},
    "salted": {"seed": 2, "max_tokens": 50, "ignore_eos": True, "cache_salt": "x"},
}


class OddTokens:
    """A constraint that depends on the whole output: ids whose sum with it is odd, and an end after five."""

    def make_matcher(self):
        return self

    def compute_mask(self, output_token_ids):
        parity = 1 - sum(output_token_ids) % 2
        allowed = sum(1 << token_id for token_id in range(2, VOCAB_SIZE) if token_id % 2 == parity)
        return (allowed | (len(output_token_ids) >= 5)).to_bytes(2, "little")


class SlowExecutor(ScriptedExecutor):
    """Takes a while, and knows whether it is computing."""

    is_computing = threading.Event()

    def execute(self, plan):
        self.is_computing.set()
        time.sleep(0.005)
        result = super().execute(plan)
        self.is_computing.clear()
        return result


def build(*, overlap, drafts=None, num_blocks=64, choose_token=None, executor_type=ScriptedExecutor, **limits):
    model = make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=120)
    executor = executor_type(num_blocks=num_blocks, block_size=16, model_config=model, choose_token=choose_token)
    limits = {"max_num_seqs": 8, "max_num_batched_tokens": 64, "overlap_scheduling": overlap, **limits}
    config = EngineConfig(model=Path("scripted"), cache=CacheConfig(block_size=16), scheduler=SchedulerConfig(**limits))
    return make_engine_core(config, executor, model_identity=b"", drafts=drafts)


def serve(core, *, constraint=None):
    """request id -> [tokens, log probabilities, prompt log probabilities, finish reason, stop id, error]."""
    results = {}
    for number, (name, options) in enumerate(OPTIONS.items()):
        params = SamplingParams(**{"max_tokens": 40, **options})
        prompt = ([3, 1, 4, 1, 5, 9, 2, 6] * 5)[: 5 + 4 * number]
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0, constraint=constraint))
        results[name] = [[], [], None, None, None, None]
    num_preemptions = 0
    while core.has_work:
        step = core.step()
        num_preemptions += step.stats.num_preemptions if step.stats else 0
        for output in step.outputs:
            result = results[output.request_id]
            assert result[3] is None, "nothing comes after the end"
            result[0] += output.new_token_ids
            result[1] += output.logprobs or []
            result[2] = output.prompt_logprobs or result[2]
            result[3:] = output.finish_reason, output.stop_token_id, output.error_message
    assert core.scheduler.cache.num_available_blocks == core.scheduler.cache.pool.num_blocks
    core.close()
    return results, num_preemptions


@pytest.fixture(scope="module")
def expected():
    return {constraint is not None: serve(build(overlap=False), constraint=constraint)[0]
            for constraint in (None, OddTokens())}  # fmt: skip


@pytest.mark.parametrize("kind", [None, *KINDS, "ngram", "auto"])
@pytest.mark.parametrize("is_constrained", [False, True])
@pytest.mark.parametrize(
    "limits",
    [{}, {"max_num_seqs": 1}, {"max_num_batched_tokens": 9}, {"num_blocks": 9}],
    ids=str,
)
def test_same_results(expected, kind, is_constrained, limits):
    results = expected[is_constrained]
    drafts = None
    if kind in KINDS:
        drafts = ForeseenDrafts({name: each[0] for name, each in results.items()}, kind, vocab_size=VOCAB_SIZE)
    elif kind is not None:
        num_draft_tokens = None if kind == "auto" else 4
        drafts = make_speculator(SpeculativeConfig(proposer="ngram", num_draft_tokens=num_draft_tokens))
    core = build(overlap=True, drafts=drafts, **limits)
    got, num_preemptions = serve(core, constraint=OddTokens() if is_constrained else None)
    assert got == results
    if "num_blocks" in limits and kind is None:
        assert num_preemptions > 0


def test_plans_while_computing():
    core = build(overlap=True, executor_type=SlowExecutor)
    schedule, was_computing = core.scheduler.schedule, []

    def watch():
        was_computing.append(core.executor.is_computing.is_set())
        return schedule()

    core.scheduler.schedule = watch
    params = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)
    core.add_request(core.rules.make_request("r", [1, 2, 3], params, arrival_time=0.0))
    while core.has_work:
        core.step()
    core.close()
    assert sum(was_computing) >= 10


@pytest.mark.parametrize("num_steps", range(1, 9))
@pytest.mark.parametrize("kind", [None, "mixed"])
def test_an_abort_at_any_step(expected, num_steps, kind):
    results = expected[False]
    drafts = kind and ForeseenDrafts({name: each[0] for name, each in results.items()}, kind, vocab_size=VOCAB_SIZE)
    core = build(overlap=True, drafts=drafts, max_num_batched_tokens=12)
    for name in ("long", "salted"):
        params = SamplingParams(**OPTIONS[name])
        prompt = ([3, 1, 4, 1, 5, 9, 2, 6] * 5)[: 5 + 4 * list(OPTIONS).index(name)]
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    got, reasons = {"long": [], "salted": []}, {}
    for number in range(1000):
        if number == num_steps:
            core.abort_request("long")
        if not core.has_work:
            break
        for output in core.step().outputs:
            got[output.request_id] += output.new_token_ids
            if output.finish_reason is not None:
                reasons[output.request_id] = output.finish_reason
    core.close()
    assert reasons == {"long": FinishReason.ABORT, "salted": FinishReason.LENGTH}
    assert got["salted"] == results["salted"][0]
    assert got["long"] == results["long"][0][: len(got["long"])]
    assert core.scheduler.cache.num_available_blocks == 64


@pytest.mark.parametrize("num_steps", range(1, 40, 3))
def test_who_was_aborted_in_flight_is_not_preempted_and_so_revived(num_steps):
    """Around step 18 each of two requests needs a third block of the four."""
    reasons, num_preemptions = {}, 0
    for number_of_abort in range(num_steps, num_steps + 3):
        core = build(overlap=True, num_blocks=4)
        for name in ("old", "new"):
            params = SamplingParams(temperature=0.0, max_tokens=45, ignore_eos=True, cache_salt=name)
            core.add_request(core.rules.make_request(name, [1] * 14, params, arrival_time=0.0))
        for number in range(1000):
            if number == number_of_abort:
                core.abort_request("new")
            if not core.has_work:
                break
            step = core.step()
            num_preemptions += step.stats.num_preemptions if step.stats else 0
            reasons |= {each.request_id: each.finish_reason for each in step.outputs if each.finish_reason}
        core.close()
        assert reasons == {"new": FinishReason.ABORT, "old": FinishReason.LENGTH}
    assert num_preemptions > 0 or num_steps < 22


def test_an_executor_that_fails_stops_the_engine():
    class Broken(ScriptedExecutor):
        def execute(self, plan):
            raise ValueError("broken")

    core = build(overlap=True, executor_type=Broken)
    core.add_request(core.rules.make_request("r", [1], SamplingParams(), arrival_time=0.0))
    assert core.step().outputs == []
    with pytest.raises(ValueError, match="broken"):
        core.step()
    core.close()


def test_drafts_end_where_output_or_blocks_end():
    core = build(overlap=False)
    request = core.rules.make_request("r", [1] * 10, SamplingParams(max_tokens=8, seed=0), arrival_time=0.0)
    request.output_token_ids = [1, 1]
    for num_pending, num_covered, expected in ((0, 99, 5), (3, 99, 2), (6, 99, 0), (0, 15, 3), (2, 15, 1), (0, 12, 0)):
        request.num_pending_tokens = num_pending
        drafts = [1] * 9
        clip_drafts(drafts, request, num_covered)
        assert len(drafts) == expected
