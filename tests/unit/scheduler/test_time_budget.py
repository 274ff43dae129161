"""Chunks solved backwards from a time budget, in simulated time: long prompts arrive while chats are running."""

import random
from pathlib import Path

import pytest

from deepinfer import ConfigError, EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.cost import StepCost, StepLoad
from deepinfer.engine.build import make_engine_core
from deepinfer.scheduler.chunking import ChunkBudget, compute_prefill_seconds
from deepinfer.testing.simulated_machine import SimulatedMachine

MACHINE = StepCost(2e-3, 1e-4, 4e-9, 3e-4, 5e-8)
TARGET = 0.040
NUM_CHATS = 16


def simulate(target_itl_seconds, *, seconds=20.0, max_num_batched_tokens=2048):
    """Gaps between tokens of the chats and times to the first token of the long prompts."""
    machine = SimulatedMachine(MACHINE)
    config = EngineConfig(
        model=Path("simulated"),
        scheduler=SchedulerConfig(max_num_batched_tokens=max_num_batched_tokens, target_itl_seconds=target_itl_seconds),
    )
    core = make_engine_core(config, machine, model_identity=b"", clock=lambda: machine.now)
    rng = random.Random(1)

    def add(name, length, max_tokens):
        params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
        prompt = [rng.randrange(1000) for _ in range(length)]
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=machine.now))

    for number in range(NUM_CHATS):
        add(f"chat{number}", 50, 4000)
    last, gaps, first_token_times = {}, [], []
    num_long = 0
    while machine.now < seconds:
        if machine.now > 1.0 + num_long:
            add(f"long{num_long}", 7000, 4)
            num_long += 1
        for output in core.step().outputs:
            name = output.request_id
            if name.startswith("chat"):
                if name in last and machine.now > 2.0:  # the model has seen a long prompt by then
                    gaps.append(machine.now - last[name])
                last[name] = machine.now
            elif output.stats is not None:
                first_token_times.append(output.stats.queue_seconds + output.stats.prefill_seconds)
    gaps.sort()
    return gaps[int(0.99 * len(gaps))], sum(first_token_times) / len(first_token_times), len(first_token_times)


def test_the_target_holds_and_long_prompts_pay_little_for_it():
    p99_with, ttft_with, num_with = simulate(TARGET)
    p99_without, ttft_without, num_without = simulate(None)
    assert p99_without > 3 * TARGET
    assert p99_with <= 1.5 * TARGET
    assert ttft_with <= 2.0 * ttft_without
    assert num_with >= num_without - 2


def test_the_cost_model_predicts_the_steps_it_plans():
    machine = SimulatedMachine(MACHINE)
    config = EngineConfig(model=Path("simulated"), scheduler=SchedulerConfig(target_itl_seconds=TARGET))
    core = make_engine_core(config, machine, model_identity=b"", clock=lambda: machine.now)
    for number in range(30):
        params = SamplingParams(temperature=0.0, max_tokens=100, ignore_eos=True)
        core.add_request(core.rules.make_request(f"r{number}", [number] * 300, params, arrival_time=machine.now))
    while core.has_work:
        stats = core.step().stats
        if stats is not None:
            assert stats.predicted_seconds > 0.0
    assert core.scheduler.cost_model.fit_error().median_ratio < 0.1


@pytest.mark.parametrize("seconds", [0.001, 0.0101, 0.02, 0.04, 1.0])
def test_a_chunk_fits_into_the_time_left(seconds):
    load = StepLoad(num_decode_rows=16, num_decode_pairs=16 * 200)
    budget = ChunkBudget(MACHINE, load, max_tokens=2048, prefill_seconds=seconds - MACHINE.predict(load), min_tokens=16)
    chunk = budget.largest_chunk(10_000, 500)
    assert chunk == 16 or MACHINE.predict(load) + MACHINE.predict_prefill(chunk, 500) <= seconds
    assert 16 <= chunk <= 2048
    budget.take(chunk, 500)
    again = budget.largest_chunk(10_000, 0)
    assert again == 0 or MACHINE.predict(load) + MACHINE.predict_prefill(again, 0) <= seconds


def test_without_decode_rows_nobody_waits_so_nothing_is_bounded():
    budget = ChunkBudget(MACHINE, StepLoad(), max_tokens=2048, prefill_seconds=1e-3, min_tokens=16)
    assert budget.largest_chunk(10_000, 0) == 2048


def test_a_prompt_shorter_than_the_grain_joins_whole():
    load = StepLoad(num_decode_rows=1, num_decode_pairs=10)
    budget = ChunkBudget(MACHINE, load, max_tokens=512, prefill_seconds=0.03, min_tokens=16)
    assert budget.largest_chunk(5, 0) == 5


@pytest.mark.parametrize(
    ("decode_seconds", "waited_seconds", "expected"),
    [
        (0.01, 0.0, 0.08),  # 0.9 of the target, less the decode rows
        (0.01, 3.9, 0.08),
        (0.01, 5.0, 0.9 * 0.1 * 1.25 - 0.01),
        (0.01, 100.0, 0.9 * 0.1 * 1.6 - 0.01),
        (0.09, 0.0, 0.03),  # a quarter of the step at least
        (3.0, 0.0, 1.0),
    ],
)
def test_what_prompts_get_of_a_step(decode_seconds, waited_seconds, expected):
    config = SchedulerConfig(target_itl_seconds=0.1, target_ttft_seconds=4.0, min_prefill_ratio=0.25)
    assert compute_prefill_seconds(config, decode_seconds, waited_seconds) == pytest.approx(expected)
    without = SchedulerConfig(target_itl_seconds=0.1, target_ttft_seconds=None, min_prefill_ratio=0.25)
    assert compute_prefill_seconds(without, decode_seconds, waited_seconds) <= expected + 1e-9
    assert compute_prefill_seconds(SchedulerConfig(target_itl_seconds=None), decode_seconds, waited_seconds) is None


def test_a_machine_whose_decode_rows_alone_miss_the_target_still_serves_prompts():
    p99, ttft, count = simulate(0.004, seconds=12.0)
    _, ttft_without, _ = simulate(None, seconds=12.0)
    assert count >= 2
    assert p99 < 0.04
    assert ttft < 8 * ttft_without


@pytest.mark.parametrize(
    ("field", "value"),
    [("target_utilization_ratio", 0.0), ("target_utilization_ratio", 1.1), ("min_prefill_ratio", 1.0),
     ("min_prefill_ratio", -0.1), ("target_ttft_seconds", 0.0)],
)  # fmt: skip
def test_values_out_of_range(field, value):
    with pytest.raises(ConfigError, match=field):
        SchedulerConfig(**{field: value})
