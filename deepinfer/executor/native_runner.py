"""Native executor: runs plans with the Rust operators of `deepinfer_cpu`. Imports no torch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import deepinfer_cpu
import numpy as np
from numpy.typing import NDArray

from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.executor.choice_rounds import ChoiceRounds, sample_from, take_best
from deepinfer.executor.host import count_usable_processors, measure_available_memory_bytes
from deepinfer.executor.kv_memory import compute_num_blocks
from deepinfer.executor.native_samples import NativeSamples, add_native_prompt_logprobs, take_sampled
from deepinfer.executor.native_weights import Progress, load_native_weights
from deepinfer.executor.prompt_rows import PromptRows, select_prompt_rows
from deepinfer.executor.request_states import RequestStates, ScheduledRequest
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput
from deepinfer.sampling import Sampler

_HALF_BYTES = 2
_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBatch:
    """T rows of R requests as the native step takes them; all arrays hold uint32.

    Attributes:
        token_ids: [T].
        row_starts: [R + 1], first row of each request, and T.
        first_positions: [R], position of each request's first row.
        table_starts: [R + 1], first entry of each request's block table in `block_ids`, and their number.
        block_ids: block tables one after the other, as far as this step reads and writes.
    """

    token_ids: array[int]
    row_starts: array[int]
    first_positions: array[int]
    table_starts: array[int]
    block_ids: array[int]


def make_native_batch(scheduled: Sequence[ScheduledRequest], block_size: int) -> NativeBatch:
    """Arrays for the scheduled requests, in their order."""
    token_ids, row_starts, first_positions = array("I"), array("I", [0]), array("I")
    table_starts, block_ids = array("I", [0]), array("I")
    for item in scheduled:
        token_ids.extend(item.row_token_ids)
        row_starts.append(len(token_ids))
        first_positions.append(item.start)
        block_ids.extend(item.state.block_ids[: -(-item.end // block_size)])
        table_starts.append(len(block_ids))
    return NativeBatch(
        token_ids=token_ids,
        row_starts=row_starts,
        first_positions=first_positions,
        table_starts=table_starts,
        block_ids=block_ids,
    )


class NativeRunner:
    """An `Executor` on the Rust operators: packed weights, one native call for each step."""

    def __init__(self, config: EngineConfig, checkpoint: Checkpoint, *, progress: Progress | None = None) -> None:
        """Repack the weights and reserve the KV blocks, whose memory stays untouched until used.

        Raises:
            WeightLoadError: a tensor is damaged or stored in a form without native operators.
            ConfigError: the KV cache does not hold one request.
        """
        model_config = checkpoint.config
        self._kv_storage = "int8" if config.cache.kv_cache_dtype == "int8" else "float16"
        self._model_config = model_config
        self._block_size = config.cache.block_size
        self._num_blocks = compute_num_blocks(
            config,
            model_config,
            bytes_per_value=_bytes_per_kv_value(config, model_config),
            available_bytes=measure_available_memory_bytes() - sum(t.data.nbytes for t in checkpoint.tensors.values()),
        )
        num_threads = config.num_threads or count_usable_processors()
        weights = load_native_weights(checkpoint, num_threads=num_threads, progress=progress)
        self._storages = sorted({t.storage for t in checkpoint.tensors.values() if len(t.shape) == 2})
        self._runner: deepinfer_cpu.Runner | None = deepinfer_cpu.Runner(
            weights,
            num_blocks=self._num_blocks,
            block_size=self._block_size,
            num_threads=num_threads,
            activations=config.cpu_activations,
            kv_storage=self._kv_storage,
        )
        self._activation_bits = 8 if config.cpu_activations == "fast" else 15
        self._num_threads = num_threads
        self._logits = np.empty((0, model_config.vocab_size), np.float32)
        self._states = RequestStates()
        self._sampler = Sampler(model_config.vocab_size)

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the model."""
        return self._model_config

    @property
    def num_blocks(self) -> int:
        """KV blocks it allocated."""
        return self._num_blocks

    def describe(self) -> str:
        """One line for the start-up log."""
        instruction_set = self._runner.instruction_set if self._runner else "closed"
        storages = "/".join(self._storages)
        return (
            f"native CPU operators {deepinfer_cpu.__version__} ({instruction_set}), {self._num_threads} threads, "
            f"weights {storages} as in the file, activations {self._activation_bits} bits, KV cache {self._kv_storage}"
        )

    def close(self) -> None:
        """Release weights, KV blocks and threads."""
        self._runner = None

    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Run one step."""
        if self._runner is None:
            raise RuntimeError("the executor is closed")
        scheduled = self._states.apply(plan)
        if not scheduled:
            return ModelRunnerOutput()
        batch = make_native_batch(scheduled, self._block_size)
        work = _sort_rows(scheduled, batch.row_starts)
        wanted = array("I", work.full.rows)
        wanted.extend(work.greedy.rows)
        samples = NativeSamples(wanted)
        samples.add_choices(work.drawn)
        for prompt in work.prompts:
            samples.add_prompt(prompt)
        logits = self._take_logits_buffer(len(work.full.rows))
        best, sampled = self._runner.step(
            token_ids=batch.token_ids,
            row_starts=batch.row_starts,
            first_positions=batch.first_positions,
            table_starts=batch.table_starts,
            block_ids=batch.block_ids,
            logit_rows=wanted,
            samples=samples.specs,
            block_copies=plan.block_copies,
            logits=logits.reshape(-1).data,
        )
        output = ModelRunnerOutput()
        if work.full.rows:
            work.full.run(output, sample_from(self._sampler, logits))
        if work.greedy.rows:
            work.greedy.run(output, take_best(best[len(work.full.rows) :]))
        if work.drawn.rows:
            work.drawn.run(output, take_sampled(sampled))
        first = len(work.drawn.rows)
        for prompt in work.prompts:
            add_native_prompt_logprobs(output, prompt, sampled[first : first + len(prompt.token_ids)])
            first += len(prompt.token_ids)
        return output

    def _take_logits_buffer(self, num_rows: int) -> NDArray[np.float32]:
        """Memory for one step's logits [num_rows, V], whose pages are there already if an earlier step used them."""
        if num_rows > len(self._logits):
            self._logits = np.empty((num_rows, self._model_config.vocab_size), np.float32)
        return self._logits[:num_rows]


def _bytes_per_kv_value(config: EngineConfig, model_config: ModelConfig) -> float:
    """Bytes of one number of a key or value, its share of the scale included."""
    if config.cache.kv_cache_dtype == "int8":
        return 1 + _SCALE_BYTES / model_config.head_dim
    return _HALF_BYTES


@dataclass(frozen=True, slots=True)
class _LogitRows:
    """Rows that need logits.

    Attributes:
        full: rows whose logits the sampler on the host sees.
        greedy: rows of which the argmax suffices.
        drawn: rows from which the native step chooses.
        prompts: rows compared with the prompt's own tokens.
    """

    full: ChoiceRounds
    greedy: ChoiceRounds
    drawn: ChoiceRounds
    prompts: list[PromptRows]


def _sort_rows(scheduled: Sequence[ScheduledRequest], row_starts: array[int]) -> _LogitRows:
    prompts: list[PromptRows] = []
    if any(item.state.sampling.params.prompt_logprobs is not None for item in scheduled):
        prompts = list(select_prompt_rows(scheduled, np.asarray(row_starts, np.int32)))
    full: list[tuple[ScheduledRequest, int]] = []
    greedy: list[tuple[ScheduledRequest, int]] = []
    drawn: list[tuple[ScheduledRequest, int]] = []
    for item, end in zip(scheduled, row_starts[1:], strict=True):
        if item.samples_token:
            row = item.state.sampling
            kind = greedy if row.needs_only_argmax else drawn if row.is_stateless else full
            kind.append((item, end))
    return _LogitRows(ChoiceRounds(full), ChoiceRounds(greedy), ChoiceRounds(drawn), prompts)
