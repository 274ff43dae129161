"""On a simulated machine verify lengths that follow cost and confidence are never far behind none or a fixed number."""

from pathlib import Path

import pytest

from deepinfer import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig, SpeculativeConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer.speculative import make_speculator

NUM_TOKENS = 160
COSTS = {"rows are cheap": (10e-3, 0.1e-3), "rows cost": (3.4e-3, 2e-3), "rows are all": (0.1e-3, 3e-3)}


class CopyingMachine(ScriptedExecutor):
    """Goes on as the tokens went on before, more or less often; a step takes base + rows * row seconds of its clock."""

    copy_share = 0.9
    base_seconds, row_seconds = 0.0, 0.0
    now = 0.0

    def execute(self, plan):
        self.now += self.base_seconds + self.row_seconds * plan.total_num_scheduled_tokens
        return super().execute(plan)

    def _choose_by_hash(self, tokens, params):
        token_id = super()._choose_by_hash(tokens, params)
        if token_id >= self.copy_share * self.model_config.vocab_size:
            return token_id
        pair = tokens[-2:]
        for end in range(len(tokens) - 1, 1, -1):
            if tokens[end - 2 : end] == pair:
                return tokens[end]
        return token_id


def tokens_per_second(speculative, *, num_clients, copy_share, cost):
    model = make_scripted_model_config(vocab_size=100, max_position_embeddings=200)
    machine = CopyingMachine(num_blocks=1000, block_size=16, model_config=model)
    machine.copy_share, (machine.base_seconds, machine.row_seconds) = copy_share, cost
    config = EngineConfig(
        model=Path("scripted"),
        cache=CacheConfig(block_size=16),
        scheduler=SchedulerConfig(max_num_seqs=32, max_num_batched_tokens=8192),
    )
    drafts = make_speculator(speculative)
    core = make_engine_core(config, machine, model_identity=b"", drafts=drafts, clock=lambda: machine.now)
    for rows in (1, 2, 4, 8, 16, 32):
        if drafts is not None:
            drafts.curve.observe(rows, machine.base_seconds + machine.row_seconds * rows, 0.0)
    params = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
    for number in range(num_clients):
        core.add_request(
            core.rules.make_request(f"r{number}", [number] + [5, 6, 7, 8, 9] * 3, params, arrival_time=0.0)
        )
    core.step()
    start = machine.now
    while core.has_work:
        core.step()
    return num_clients * NUM_TOKENS / (machine.now - start)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("num_clients", [1, 8, 24])
@pytest.mark.parametrize("copy_share", [0.2, 0.9, 0.99])
def test_as_many_drafts_as_are_worth_it(num_clients, copy_share, cost):
    options = {"num_clients": num_clients, "copy_share": copy_share, "cost": COSTS[cost]}
    off = tokens_per_second(SpeculativeConfig(), **options)
    fixed = tokens_per_second(SpeculativeConfig(proposer="ngram", num_draft_tokens=5), **options)
    scheduled = tokens_per_second(SpeculativeConfig(proposer="ngram"), **options)
    assert scheduled >= 0.96 * max(off, fixed)
    if cost == "rows are cheap" and copy_share == 0.99 and num_clients < 24:
        assert scheduled > 1.15 * off
