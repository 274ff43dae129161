"""An executor that computes nothing and takes as long as a cost formula says, on a clock of its own. No torch."""

from __future__ import annotations

import random

from deepinfer.config import ModelConfig
from deepinfer.cost import StepCost, StepLoad
from deepinfer.executor.scripted import make_scripted_model_config
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput


class SimulatedMachine:
    """Random tokens at simulated times, for schedulers that are to be watched for minutes within a second.

    Attributes:
        now: simulated seconds; `lambda: machine.now` is the clock for whatever runs on it.
        num_blocks: KV blocks it pretends to hold.
    """

    def __init__(
        self, cost: StepCost, *, num_blocks: int = 3000, max_position_embeddings: int = 8192, noise_ratio: float = 0.03
    ) -> None:
        self.now = 0.0
        self.num_blocks = num_blocks
        self._model_config = make_scripted_model_config(
            vocab_size=1000, max_position_embeddings=max_position_embeddings
        )
        self._cost = cost
        self._noise_ratio = noise_ratio
        self._lengths: dict[str, int] = {}
        self._rng = random.Random(0)

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the pretended model."""
        return self._model_config

    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Take the time of the step, and give a token to each request that has reached its last one."""
        for name in (*plan.finished_request_ids, *plan.preempted_request_ids):
            del self._lengths[name]
        for new in plan.scheduled_new_requests:
            self._lengths[new.request_id] = len(new.token_ids)
        starts = {data.request_id: data.num_computed_tokens for data in plan.scheduled_new_requests}
        for known in plan.scheduled_known_requests:
            computed = known.num_computed_tokens
            starts[known.request_id] = self._lengths[known.request_id] - 1 if computed is None else computed
        load, result = StepLoad(), ModelRunnerOutput()
        for name, count in plan.num_scheduled_tokens.items():
            if count == 1:
                load.num_decode_rows += 1
                load.num_decode_pairs += starts[name]
            else:
                load.add_prefill(count, starts[name])
            if starts[name] + count == self._lengths[name]:
                result.sampled_token_ids[name] = [self._rng.randrange(1, 1000)]
                self._lengths[name] += 1
        self.now += self._cost.predict(load) * self._rng.gauss(1.0, self._noise_ratio)
        return result

    def describe(self) -> str:
        """One line for the start-up log."""
        return "simulated machine, no model"

    def close(self) -> None:
        """Nothing to release."""
