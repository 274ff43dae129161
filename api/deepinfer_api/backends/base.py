"""The door between the HTTP layer and whatever produces tokens. Knows ids, no text and no HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput, TokenConstraint
from deepinfer.sampling_params import SamplingParams
from deepinfer.structured import GrammarSpec


@dataclass(frozen=True, slots=True)
class BackendLoad:
    """How busy a backend is: requests that run and requests that wait."""

    num_running: int
    num_waiting: int


class GenerationBackend(Protocol):
    """Token ids in, token ids out."""

    @property
    def max_model_len(self) -> int:
        """Longest prompt + output in tokens."""
        ...

    @property
    def is_dead(self) -> bool:
        """Whether it has failed for good; liveness turns red."""
        ...

    @property
    def current_step_seconds(self) -> float:
        """How long the step in progress has been running, 0.0 between steps."""
        ...

    async def prepare_grammar(self, spec: GrammarSpec) -> TokenConstraint:
        """Compile a form that outputs must have, off the event loop.

        Raises:
            RequestError: it is malformed, not covered, or too complex.
            QueueFullError: too many are being compiled.
            ConfigError: forms are not possible here.
        """
        ...

    def generate(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        sampling_params: SamplingParams,
        *,
        arrival_time: float,
        client_key: str = "",
        constraint: TokenConstraint | None = None,
    ) -> AsyncIterator[EngineOutput]:
        """Admit one sequence and return its outputs; the last one has a finish reason.

        Args:
            request_id: unique among unfinished requests.
            prompt_token_ids: the prompt, at least one token.
            sampling_params: how to choose tokens.
            arrival_time: `time.monotonic()` when the request reached the server.
            client_key: whose request it is; clients share the engine fairly.
            constraint: the form the output must have, from `prepare_grammar`.

        Raises:
            RequestError: at the call, when the request cannot be served.
            QueueFullError: at the call, when too many wait.
            EngineDeadError: at the call or while iterating.
        """
        ...

    def abort(self, request_id: str) -> None:
        """End a request in any state; unknown or finished ids are ignored."""
        ...

    def load(self) -> BackendLoad:
        """How many requests run and wait now."""
        ...

    def add_step_listener(self, listener: Callable[[StepStats], None]) -> None:
        """Call `listener` after each step, from the backend's own thread."""
        ...

    async def close(self) -> None:
        """Stop; unfinished requests end as aborted."""
        ...
