"""With speculation or without, requests get the same tokens, log probabilities and ends, and all blocks come back."""

from pathlib import Path

import pytest

from deepinfer import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig, SpeculativeConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer.speculative import make_speculator
from deepinfer.testing.foreseen_drafts import KINDS, ForeseenDrafts

VOCAB_SIZE = 12  # so small that outputs repeat themselves
PHRASE = [3, 1, 4, 1, 5, 9, 2, 6]
OPTIONS = {
    "greedy": {"temperature": 0.0},
    "seeded": {"seed": 5},
    "logprobs": {"seed": 6, "logprobs": 2},
    "prompt logprobs": {"temperature": 0.0, "prompt_logprobs": 1, "logprobs": 0},
    "stop id": {"temperature": 0.0, "stop_token_ids": (7, 8)},
    "ignore eos": {"temperature": 0.0, "ignore_eos": True},
    "one token": {"temperature": 0.0, "max_tokens": 1},
    "two tokens": {"temperature": 0.0, "max_tokens": 2},
    "odd tokens": {"seed": 1, "max_tokens": 13, "ignore_eos": True},
}


class CopyingExecutor(ScriptedExecutor):
    """Often goes on as the tokens went on before, so that copied drafts are often right."""

    def _choose_by_hash(self, tokens, params):
        pair, token_id = list(tokens[-2:]), super()._choose_by_hash(tokens, params)
        if token_id % 4 == 3:
            return token_id
        for end in range(len(tokens) - 1, 1, -1):
            if list(tokens[end - 2 : end]) == pair:
                return tokens[end]
        return token_id


class EvenTokens:
    """A constraint: even ids only, and an end only after six of them."""

    def make_matcher(self):
        return self

    def compute_mask(self, output_token_ids):
        allowed = sum(1 << token_id for token_id in range(2, VOCAB_SIZE, 2)) | (len(output_token_ids) >= 6)
        return allowed.to_bytes(2, "little")


def build(*, drafts=None, num_blocks=64, **limits):
    model = make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=120)
    executor = CopyingExecutor(num_blocks=num_blocks, block_size=16, model_config=model)
    config = EngineConfig(
        model=Path("scripted"),
        cache=CacheConfig(block_size=16),
        scheduler=SchedulerConfig(**{"max_num_seqs": 8, "max_num_batched_tokens": 64, **limits}),
    )
    return make_engine_core(config, executor, model_identity=b"", drafts=drafts)


def serve(core, *, constraint=None):
    """request id -> (tokens, log probabilities, prompt log probabilities, finish reason, stop id, error)."""
    results = {}
    for number, (name, options) in enumerate(OPTIONS.items()):
        params = SamplingParams(**{"max_tokens": 40, **options})
        prompt = (PHRASE * 5)[: 5 + 4 * number]
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0, constraint=constraint))
        results[name] = [[], [], None, None, None, None]
    drafted = accepted = 0
    while core.has_work:
        step = core.step()
        if step.stats:
            drafted += step.stats.num_draft_tokens
            accepted += step.stats.num_accepted_tokens
        for output in step.outputs:
            result = results[output.request_id]
            result[0] += output.new_token_ids
            result[1] += output.logprobs or []
            result[2] = output.prompt_logprobs or result[2]
            result[3:] = output.finish_reason, output.stop_token_id, output.error_message
    assert core.scheduler.cache.num_available_blocks == core.scheduler.cache.pool.num_blocks
    return results, drafted, accepted


@pytest.fixture(scope="module")
def expected():
    return serve(build())[0]


def make_drafts(kind, expected):
    if kind == "ngram":
        return make_speculator(SpeculativeConfig(proposer="ngram", num_draft_tokens=6))
    if kind == "auto":
        return make_speculator(SpeculativeConfig(proposer="ngram"))
    return ForeseenDrafts({name: result[0] for name, result in expected.items()}, kind, vocab_size=VOCAB_SIZE)


@pytest.mark.parametrize("kind", [*KINDS, "ngram", "auto"])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_num_seqs": 1},
        {"max_num_batched_tokens": 9},
        {"max_num_batched_tokens": 20, "max_num_seqs": 3},
        {"num_blocks": 9},
    ],
    ids=str,
)
def test_same_results(expected, kind, limits):
    results, drafted, accepted = serve(build(drafts=make_drafts(kind, expected), **limits))
    assert results == expected
    assert 0 <= accepted <= drafted
    if not limits and kind != "auto":
        assert drafted > 0
        assert accepted == 0 if kind == "wrong" else accepted > 0.1 * drafted


@pytest.mark.parametrize("kind", [*KINDS, "ngram"])
def test_same_results_under_a_constraint(kind):
    constrained = serve(build(), constraint=EvenTokens())[0]
    assert all(token_id % 2 == 0 for result in constrained.values() for token_id in result[0])
    results, _, accepted = serve(build(drafts=make_drafts(kind, constrained)), constraint=EvenTokens())
    assert results == constrained
    assert kind == "wrong" or accepted > 0


def test_an_error_behind_an_accepted_draft_comes_after_the_tokens_before_it():
    def choose(tokens, params):
        from deepinfer.errors import RequestError

        if len(tokens) >= 9:
            raise RequestError("nine are enough")
        return 1

    executor = ScriptedExecutor(num_blocks=8, block_size=16, choose_token=choose)
    drafts = ForeseenDrafts({"r": [1] * 20}, "right", vocab_size=2)
    config = EngineConfig(model=Path("scripted"), cache=CacheConfig(block_size=16))
    core = make_engine_core(config, executor, model_identity=b"", drafts=drafts)
    core.add_request(core.rules.make_request("r", [5, 5], SamplingParams(max_tokens=30), arrival_time=0.0))
    outputs = []
    while core.has_work:
        outputs += core.step().outputs
    assert [token_id for output in outputs for token_id in output.new_token_ids] == [1] * 7
    assert outputs[-1].error_message == "nine are enough"
    assert core.scheduler.cache.num_available_blocks == 8


def test_counts_in_the_statistics_of_a_request():
    core = build(drafts=ForeseenDrafts({}, "wrong", vocab_size=VOCAB_SIZE))
    core.add_request(core.rules.make_request("r", PHRASE, SamplingParams(max_tokens=20, seed=3, ignore_eos=True),
                                             arrival_time=0.0))  # fmt: skip
    steps = []
    while core.has_work:
        steps.append(core.step())
    stats = steps[-1].outputs[0].stats
    assert stats.num_draft_tokens == sum(step.stats.num_draft_tokens for step in steps) > 0
    assert stats.num_accepted_tokens == sum(step.stats.num_accepted_tokens for step in steps)
    assert stats.num_output_tokens == 20
    assert [len(step.stats.verify_lens) for step in steps] == [0] + [1] * (len(steps) - 1)
    assert sum(sum(step.stats.verify_lens) - 1 for step in steps[1:]) == stats.num_draft_tokens


def test_an_abort_while_drafts_are_verified_keeps_what_was_certain():
    core = build(drafts=ForeseenDrafts({}, "wrong", vocab_size=VOCAB_SIZE))
    core.add_request(core.rules.make_request("r", PHRASE * 2, SamplingParams(seed=1, max_tokens=50, ignore_eos=True),
                                             arrival_time=0.0))  # fmt: skip
    for _ in range(6):
        core.step()
    plan = core.scheduler.schedule()
    core.abort_request("r")
    outputs = core.scheduler.update(plan, core.executor.execute(plan))
    assert outputs[0].new_token_ids == []
    assert core.scheduler.cache.num_available_blocks == core.scheduler.cache.pool.num_blocks
