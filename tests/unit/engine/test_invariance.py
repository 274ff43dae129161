"""A request's output is its own: whatever else runs, however it is cut up, cached, ordered or preempted."""

import pytest

from deepinfer import SamplingParams

PROMPTS = {f"r{number}": ([number % 3] * 37 + list(range(number * 9)))[: 5 + 9 * number] for number in range(10)}
PARAMS = {
    name: SamplingParams(
        temperature=0.0 if number % 2 else 0.8, seed=number, max_tokens=10 + 5 * number, ignore_eos=number % 3 == 0
    )
    for number, name in enumerate(PROMPTS)
}


def serve(core, names):
    outputs = {name: [] for name in names}
    for name in names:
        core.add_request(core.rules.make_request(name, PROMPTS[name], PARAMS[name], arrival_time=0.0))
    num_preemptions = 0
    while core.has_work:
        step = core.step()
        num_preemptions += step.stats.num_preemptions if step.stats else 0
        for output in step.outputs:
            outputs[output.request_id] += output.new_token_ids
    assert core.scheduler.cache.num_available_blocks == core.scheduler.cache.pool.num_blocks
    return outputs, num_preemptions


@pytest.fixture(scope="module")
def expected():
    from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config

    executor = ScriptedExecutor(num_blocks=1, block_size=16, model_config=make_scripted_model_config(vocab_size=200))
    return {name: executor.predict(PROMPTS[name], PARAMS[name], frozenset({0})) for name in PROMPTS}


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("budget", [10, 11, 16, 64, 400])
@pytest.mark.parametrize("max_num_seqs", [1, 3, 10])
def test_chunk_size_batch_size_and_cache(make_core, expected, caching, budget, max_num_seqs):
    core = make_core(caching=caching, max_num_batched_tokens=budget, max_num_seqs=max_num_seqs)
    assert serve(core, list(PROMPTS))[0] == expected


def test_order_of_arrival(make_core, expected):
    assert serve(make_core(), list(reversed(PROMPTS)))[0] == expected


@pytest.mark.parametrize("block_size", [16, 32, 64, 128])
def test_block_size(make_core, expected, block_size):
    assert serve(make_core(num_blocks=32, block_size=block_size), list(PROMPTS))[0] == expected


@pytest.mark.parametrize("budget", [64, 512])
def test_prompts_around_the_block_size(make_core, budget):
    core = make_core(block_size=128, max_model_len=1100, num_blocks=64, max_num_batched_tokens=budget)
    params = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True)
    prompts = {f"r{length}": [length % 190] * length for length in (1, 127, 128, 129, 255, 256, 257, 1024)}
    for name, prompt in prompts.items():
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    outputs = {name: [] for name in prompts}
    while core.has_work:
        for output in core.step().outputs:
            outputs[output.request_id] += output.new_token_ids
    assert outputs == {name: core.executor.predict(prompt, params) for name, prompt in prompts.items()}


@pytest.mark.parametrize("caching", [True, False])
def test_forced_preemption(make_core, expected, caching):
    core = make_core(num_blocks=11, max_model_len=176, caching=caching)
    outputs, num_preemptions = serve(core, list(PROMPTS))
    assert outputs == expected
    assert num_preemptions >= 3


def test_a_second_round_served_from_the_cache(make_core, expected):
    core = make_core(num_blocks=200)
    assert serve(core, list(PROMPTS))[0] == expected
    assert serve(core, list(PROMPTS))[0] == expected
