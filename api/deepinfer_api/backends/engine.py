"""The engine of this project behind the server. Imports no torch: the engine is handed over running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from deepinfer.engine.async_engine import AsyncEngine
from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput, TokenConstraint
from deepinfer.sampling_params import SamplingParams
from deepinfer.structured import GrammarSpec
from deepinfer_api.backends.base import BackendLoad


class EngineBackend:
    """`GenerationBackend` over an `AsyncEngine`, which it owns."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._num_running = 0
        engine.add_step_listener(self._on_step)

    @property
    def max_model_len(self) -> int:
        """See `GenerationBackend.max_model_len`."""
        return self._engine.max_model_len

    @property
    def is_dead(self) -> bool:
        """See `GenerationBackend.is_dead`."""
        return self._engine.is_dead

    @property
    def current_step_seconds(self) -> float:
        """See `GenerationBackend.current_step_seconds`."""
        return self._engine.current_step_seconds

    async def prepare_grammar(self, spec: GrammarSpec) -> TokenConstraint:
        """See `GenerationBackend.prepare_grammar`."""
        return await self._engine.prepare_grammar(spec)

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
        """See `GenerationBackend.generate`."""
        return self._engine.add_request(
            request_id,
            prompt_token_ids,
            sampling_params,
            arrival_time=arrival_time,
            client_key=client_key,
            constraint=constraint,
        )

    def abort(self, request_id: str) -> None:
        """See `GenerationBackend.abort`."""
        self._engine.abort(request_id)

    def load(self) -> BackendLoad:
        """See `GenerationBackend.load`; the split between running and waiting is that of the last step."""
        num_unfinished = self._engine.num_unfinished_requests
        num_running = min(self._num_running, num_unfinished)
        return BackendLoad(num_running, num_unfinished - num_running)

    def add_step_listener(self, listener: Callable[[StepStats], None]) -> None:
        """See `GenerationBackend.add_step_listener`."""
        self._engine.add_step_listener(listener)

    async def close(self) -> None:
        """See `GenerationBackend.close`."""
        await asyncio.to_thread(self._engine.close)

    def _on_step(self, step: StepStats) -> None:
        self._num_running = step.num_running
