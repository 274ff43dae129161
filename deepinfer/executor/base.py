"""The door between the engine loop and whatever computes the model. No torch here."""

from __future__ import annotations

from typing import Protocol

from deepinfer.config import ModelConfig
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput


class Executor(Protocol):
    """Holds weights and KV blocks and executes plans.

    One thread calls `execute` at a time, with plans in their order. An executor keeps the token ids and block table of
    each request it was given by `NewRequestData`, appends the tokens it samples, and forgets a request named in
    `preempted_request_ids` or `finished_request_ids`.

    A plan may have been made while the one before it was executed. Then it leaves to the executor what only that one's
    result tells: at which position the row of a request stands, and whether its drafts still make sense. It may have a
    row of a request that has ended meanwhile, whose result nobody reads, in blocks that others get by later plans.
    """

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the model."""
        ...

    @property
    def num_blocks(self) -> int:
        """KV blocks it allocated; ids 0 .. num_blocks - 1 are all usable."""
        ...

    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Run one step."""
        ...

    def describe(self) -> str:
        """One line for the start-up log: device, operators, number types, threads."""
        ...

    def close(self) -> None:
        """Release memory and threads; further calls are errors."""
        ...
