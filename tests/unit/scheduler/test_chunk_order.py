"""Short prompts do not wait behind long ones, long ones do not starve, and nobody waits longer than the aging bound."""

import random
from pathlib import Path

import pytest

from deepinfer import EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.cost import StepCost
from deepinfer.engine.build import make_engine_core
from deepinfer.scheduler.chunking import ChunkPhase, order_phases
from deepinfer.testing.simulated_machine import SimulatedMachine

SLOW = StepCost(5e-3, 2e-3, 1e-8, 2e-3, 1e-7)  # 500 prompt tokens a second
ALL = [(ChunkPhase.OLDEST, 1.0), (ChunkPhase.OTHERS, 1.0), (ChunkPhase.NEW, 1.0)]


class Simulation:
    """Requests at simulated times; `first_token_seconds` and `queue_seconds` by name."""

    def __init__(self, cost=SLOW, **limits):
        self.machine = SimulatedMachine(cost)
        config = EngineConfig(model=Path("simulated"), scheduler=SchedulerConfig(**limits))
        self.core = make_engine_core(config, self.machine, model_identity=b"", clock=lambda: self.machine.now)
        self.rng = random.Random(0)
        self.first_token_seconds, self.queue_seconds = {}, {}

    def add(self, name, length, max_tokens=4, **options):
        prompt = [self.rng.randrange(1000) for _ in range(length)]
        client_key = options.pop("client_key", "")
        params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True, **options)
        self.core.add_request(
            self.core.rules.make_request(
                name, prompt, params, arrival_time=self.machine.now, client_key=client_key
            )
        )  # fmt: skip

    def step(self):
        if not self.core.has_work:
            self.machine.now += 0.05
            return
        for output in self.core.step().outputs:
            if output.stats is not None:
                stats = output.stats
                self.queue_seconds[output.request_id] = stats.queue_seconds
                self.first_token_seconds[output.request_id] = stats.queue_seconds + stats.prefill_seconds

    def run(self, seconds):
        end = self.machine.now + seconds
        while self.machine.now < end:
            self.step()


@pytest.mark.parametrize("has_chat", [True, False])
@pytest.mark.parametrize("target_itl_seconds", [0.25, None])
def test_short_prompts_pass_a_long_one(has_chat, target_itl_seconds):
    """A 7,000-token prompt takes 14 s or more; short ones that come meanwhile do not wait for its end."""
    simulation = Simulation(target_itl_seconds=target_itl_seconds)
    if has_chat:
        simulation.add("chat", 20, max_tokens=4000)
        simulation.run(0.5)
    simulation.add("long", 7000)
    for number in range(8):
        simulation.run(1.0)
        simulation.add(f"short{number}", 50)
    simulation.run(40.0)
    times = simulation.first_token_seconds
    assert max(times[f"short{number}"] for number in range(8)) < 3.0
    assert 13.0 < times["long"] < 30.0


def test_a_stream_of_short_prompts_leaves_half_to_the_long_one():
    simulation = Simulation(target_itl_seconds=None)
    simulation.add("long", 7000)
    number = 0
    while "long" not in simulation.first_token_seconds:
        for _ in range(8):
            simulation.add(f"short{number}", 100, max_tokens=1)
            number += 1
        simulation.step()
        assert simulation.machine.now < 60.0
    assert simulation.first_token_seconds["long"] < 2.2 * 14.5


def test_prompts_of_the_same_length_go_one_after_the_other():
    simulation = Simulation()
    for number in range(4):
        simulation.add(f"r{number}", 2000)
    simulation.run(60.0)
    times = [simulation.first_token_seconds[f"r{number}"] for number in range(4)]
    assert times == sorted(times)
    assert times[0] < 0.35 * times[3]


@pytest.mark.parametrize("priority", [0, 5])
@pytest.mark.parametrize("max_num_seqs", [1, 4])
def test_nobody_waits_longer_than_the_aging_bound_allows(priority, max_num_seqs):
    """Endless short requests of another client go first by priority and by share, yet each long one is let in after the
    bound and at most as many admissions as there are overdue ones."""
    simulation = Simulation(max_num_seqs=max_num_seqs, max_wait_seconds=5.0)
    number = 0
    for index in range(3):
        simulation.add(f"long{index}", 1500, client_key="long", priority=priority)
    while simulation.machine.now < 60.0:
        while simulation.core.scheduler.num_waiting < 12:
            simulation.add(f"short{number}", 200, max_tokens=2, client_key="short")
            number += 1
        simulation.step()
    waits = [simulation.queue_seconds[f"long{index}"] for index in range(3)]
    # 0.4 s for a short request; a long one that is let in takes 3 s of the machine before the next.
    assert max(waits) < 5.0 + 3 * (3.0 + 1.0)
    assert number > 20


def test_two_keys_share_the_engine_by_cost():
    """One key sends four times as many tokens a request as the other: both get about the same computing time."""
    simulation = Simulation(max_num_seqs=2, max_wait_seconds=1000.0)
    counts = {"big": 0, "small": 0}
    for number in range(400):
        simulation.add(f"small{number}", 100, max_tokens=1, client_key="small")
        if number < 100:
            simulation.add(f"big{number}", 400, max_tokens=1, client_key="big")
    while simulation.machine.now < 25.0:
        simulation.step()
    for name in simulation.first_token_seconds:
        counts[name.rstrip("0123456789")] += 1
    assert counts["small"] == pytest.approx(4 * counts["big"], rel=0.25)
    assert counts["big"] > 10


def serve_closed_loop(target_itl_seconds, *, num_clients=32, seconds=30.0):
    """Longest gap between tokens after the first requests, and tokens, of clients that ask again when they are
    answered: 100 tokens of their own behind 400 shared ones, 64 tokens of output."""
    simulation = Simulation(target_itl_seconds=target_itl_seconds)
    core, machine = simulation.core, simulation.machine
    shared = [simulation.rng.randrange(1000) for _ in range(400)]
    params = SamplingParams(temperature=0.0, max_tokens=64, ignore_eos=True)
    last, longest_gap, num_tokens, num_requests = {}, 0.0, 0, 0
    while machine.now < seconds:
        while core.scheduler.num_unfinished < num_clients:
            prompt = shared + [simulation.rng.randrange(1000) for _ in range(100)]
            core.add_request(core.rules.make_request(f"r{num_requests}", prompt, params, arrival_time=machine.now))
            num_requests += 1
        for output in core.step().outputs:
            num_tokens += len(output.new_token_ids)
            if output.request_id in last and num_requests > num_clients:
                longest_gap = max(longest_gap, machine.now - last[output.request_id])
            last[output.request_id] = machine.now
    return longest_gap, num_tokens


def test_by_default_no_gap_is_long_on_a_slow_machine_and_throughput_stays():
    gap, num_tokens = serve_closed_loop(SchedulerConfig().target_itl_seconds)
    gap_without, num_tokens_without = serve_closed_loop(None)
    assert gap < 0.5
    assert gap_without > 1.0
    assert num_tokens > 0.95 * num_tokens_without


@pytest.mark.parametrize("has_others", [False, True])
@pytest.mark.parametrize("has_new", [False, True])
def test_the_oldest_keeps_half(has_others, has_new):
    phases = order_phases(has_others=has_others, has_new=has_new, is_tight=False, turn=3)
    assert phases[-3:] == ALL
    shares = [share for _, share in phases[:-3]]
    assert shares == sorted(shares)
    assert shares[-1:] == ([0.5] if has_others or has_new else [])


def test_a_tight_budget_goes_round():
    firsts = [
        order_phases(has_others=True, has_new=True, is_tight=True, turn=turn)[0][0] for turn in range(8)
    ]  # fmt: skip
    oldest, others, new = ChunkPhase.OLDEST, ChunkPhase.SHORT_OTHERS, ChunkPhase.SHORT_NEW
    assert firsts == [oldest, others, oldest, new] * 2
    assert order_phases(has_others=False, has_new=False, is_tight=True, turn=1) == ALL
