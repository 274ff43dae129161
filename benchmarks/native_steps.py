"""Steps of the native CPU operators without scheduler, sampler and server, to be timed."""

from __future__ import annotations

import random
import statistics
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepinfer.executor.native_weights import load_native_weights
from deepinfer.loader.open import open_checkpoint

if TYPE_CHECKING:
    import deepinfer_cpu

BLOCK_SIZE = 128


@dataclass(frozen=True, slots=True)
class Model:
    """Packed weights, and how many bytes a step of one token reads: all weights but the embeddings' own copy, and the
    keys and values of one position."""

    weights: deepinfer_cpu.Weights
    vocab_size: int
    bytes_of_weights: int
    bytes_per_position: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians over repeats: seconds on the clock, and seconds of processor time of all threads."""

    wall: float
    processor: float


def load_weights(path: Path, num_threads: int) -> Model:
    """The packed weights of a model file."""
    checkpoint = open_checkpoint(path)
    weights = load_native_weights(checkpoint, num_threads=num_threads)
    num_bytes = sum(tensor.data.nbytes for tensor in checkpoint.tensors.values())
    if "lm_head" in checkpoint.tensors:
        num_bytes -= checkpoint.tensors["embed_tokens"].data.nbytes
    return Model(weights, checkpoint.config.vocab_size, num_bytes, 2 * checkpoint.config.num_kv_values_per_token)


class NativeSteps:
    """A runner with room for `num_sequences` sequences of `max_len` tokens."""

    def __init__(self, model: Model, *, num_sequences: int, max_len: int, **options: object) -> None:
        import deepinfer_cpu

        self._model = model
        self._blocks_each = -(-max_len // BLOCK_SIZE)
        self.runner = deepinfer_cpu.Runner(
            model.weights, num_blocks=num_sequences * self._blocks_each, block_size=BLOCK_SIZE, **options
        )
        self._random = random.Random(1)

    def bytes_per_step(self, context: int) -> int:
        """What a step of one sequence has to read."""
        return self._model.bytes_of_weights + context * self._model.bytes_per_position

    def step(self, firsts: list[int], counts: list[int], copies: list[tuple[int, int]] | None = None) -> None:
        """Add counts[i] tokens to sequence i from position firsts[i] on; the last row of each has its argmax taken."""
        token_ids = array("I", (self._random.randrange(self._model.vocab_size) for _ in range(sum(counts))))
        starts, tables, blocks = array("I", [0]), array("I", [0]), array("I")
        for index, (first, count) in enumerate(zip(firsts, counts, strict=True)):
            starts.append(starts[-1] + count)
            own = -(-(first + count) // BLOCK_SIZE)
            blocks.extend(range(index * self._blocks_each, index * self._blocks_each + own))
            tables.append(len(blocks))
        self.runner.step(
            token_ids=token_ids,
            row_starts=starts,
            first_positions=array("I", firsts),
            table_starts=tables,
            block_ids=blocks,
            logit_rows=array("I", (end - 1 for end in starts[1:])),
            block_copies=copies or [],
        )

    def prefill(self, num_tokens: int, chunk: int = 512) -> None:
        """Fill the first positions of sequence 0, `chunk` rows a step."""
        for first in range(0, num_tokens, chunk):
            self.step([first], [min(chunk, num_tokens - first)])

    def spread(self, num_sequences: int) -> None:
        """Give the first sequences the cache contents of sequence 0."""
        each = self._blocks_each
        pairs = [(block, index * each + block) for index in range(1, num_sequences) for block in range(each)]
        self.step([0], [1], pairs)

    def time_decode(self, batch: int, context: int, num_steps: int) -> Timing:
        """One step of `batch` rows at `context` tokens each."""
        self.step([context] * batch, [1] * batch)
        return self._time(num_steps, lambda: self.step([context] * batch, [1] * batch))

    def time_prefill(self, num_tokens: int, num_steps: int = 1, chunk: int = 512) -> Timing:
        """A whole prompt."""
        return self._time(num_steps, lambda: self.prefill(num_tokens, chunk))

    @staticmethod
    def _time(num_steps: int, work: Callable[[], None]) -> Timing:
        walls, processors = [], []
        for _ in range(num_steps):
            wall, processor = time.perf_counter(), time.process_time()
            work()
            walls.append(time.perf_counter() - wall)
            processors.append(time.process_time() - processor)
        return Timing(statistics.median(walls), statistics.median(processors))
