"""Outputs of a required form, among other requests and through preemption."""

import json

import pytest

from deepinfer import FinishReason, GrammarSpec, RequestError, SamplingParams
from deepinfer.structured import GrammarCompiler, Vocabulary
from deepinfer.testing.foreseen_drafts import ForeseenDrafts

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string", "pattern": "^[a-z]{4,8}$"}, "ok": {"type": "boolean"}},
    "required": ["id", "ok"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def compiler():
    tokens = [b"<eos>", *(bytes([value]) for value in range(1, 128))]
    return GrammarCompiler(
        lambda: Vocabulary(
            tokens=tokens,
            special_token_ids=[0],
            eos_token_ids=[0],
            encode=lambda text: list(text.encode()),
            size=200,
        )
    )


def serve(core, grammar, count):
    for number in range(count):
        params = SamplingParams(temperature=0.0, max_tokens=100)
        constraint = grammar if number % 2 == 0 else None
        request = core.rules.make_request(
            f"r{number}", [number + 1] * 10, params, arrival_time=0.0, constraint=constraint
        )
        core.add_request(request)
    outputs, last = {f"r{number}": [] for number in range(count)}, {}
    num_preemptions = 0
    while core.has_work:
        step = core.step()
        num_preemptions += step.stats.num_preemptions if step.stats else 0
        for output in step.outputs:
            outputs[output.request_id] += output.new_token_ids
            last[output.request_id] = output
    return outputs, last, num_preemptions


def test_forms_survive_preemption(make_core, compiler):
    grammar = compiler.compile(GrammarSpec("json_schema", json.dumps(SCHEMA)))
    roomy = serve(make_core(max_model_len=112), grammar, 8)
    tight = serve(make_core(max_model_len=112, num_blocks=7), grammar, 8)
    assert tight[2] >= 3
    assert tight[0] == roomy[0]
    for number in range(0, 8, 2):
        tokens = tight[0][f"r{number}"]
        assert tight[1][f"r{number}"].finish_reason is FinishReason.STOP
        assert tokens[-1] == 0
        value = json.loads(bytes(tokens[:-1]))
        assert 4 <= len(value["id"]) <= 8
        assert isinstance(value["ok"], bool)


@pytest.mark.parametrize("kind", ["right", "mixed", None])
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("num_blocks", [7, 64])
def test_forms_survive_drafts_overlap_and_preemption(make_core, compiler, kind, overlap, num_blocks):
    grammar = compiler.compile(GrammarSpec("json_schema", json.dumps(SCHEMA)))
    plain = serve(make_core(max_model_len=112), grammar, 8)
    drafts = kind and ForeseenDrafts(plain[0], kind, vocab_size=128)
    options = {"num_blocks": num_blocks, "overlap_scheduling": overlap}
    outputs, last, num_preemptions = serve(make_core(max_model_len=112, drafts=drafts, **options), grammar, 8)
    assert outputs == plain[0]
    assert {name: output.finish_reason for name, output in last.items()} == {
        name: output.finish_reason for name, output in plain[1].items()
    }
    assert (num_preemptions > 0) is (num_blocks == 7)


def test_a_matcher_that_fails_ends_its_request_alone(make_core):
    class Broken:
        def make_matcher(self):
            return self

        def compute_mask(self, output_token_ids):
            if len(output_token_ids) == 2:
                raise RequestError("the output left its grammar")
            return None

    outputs, last, _ = serve(make_core(), Broken(), 4)
    for number in range(4):
        output = last[f"r{number}"]
        if number % 2 == 0:
            assert (output.finish_reason, output.error_message) == (FinishReason.ERROR, "the output left its grammar")
            assert len(outputs[f"r{number}"]) == 2
        else:
            assert output.finish_reason is not FinishReason.ERROR
