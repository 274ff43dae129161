"""Runners over small random models, and a driver that cuts sequences into steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from deepinfer.config import ModelConfig
from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies
from deepinfer.loader.checkpoint import RawTensor

deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

BLOCK_SIZE = 16
BLOCKS_PER_SEQUENCE = 40


@dataclass
class Driver:
    """A runner with some sequences, whose blocks are laid apart so that tables are not in order."""

    runner: deepinfer_cpu.Runner
    vocab_size: int
    num_sequences: int
    block_size: int = BLOCK_SIZE
    lengths: dict[int, int] = field(default_factory=dict)

    def table(self, sequence: int) -> list[int]:
        """Blocks of a sequence."""
        return [sequence + index * self.num_sequences for index in reversed(range(BLOCKS_PER_SEQUENCE))]

    def step(self, rows: dict[int, Sequence[int]]) -> NDArray[np.float32]:
        """Append tokens to sequences; logits [rows, vocabulary] of all of them."""
        token_ids, row_starts, first_positions = array("I"), array("I", [0]), array("I")
        table_starts, block_ids = array("I", [0]), array("I")
        for sequence, tokens in rows.items():
            token_ids.extend(tokens)
            row_starts.append(len(token_ids))
            first_positions.append(self.lengths.get(sequence, 0))
            block_ids.extend(self.table(sequence))
            table_starts.append(len(block_ids))
            self.lengths[sequence] = self.lengths.get(sequence, 0) + len(tokens)
        logits = np.full((len(token_ids), self.vocab_size), np.nan, np.float32)
        best, _ = self.runner.step(
            token_ids=token_ids,
            row_starts=row_starts,
            first_positions=first_positions,
            table_starts=table_starts,
            block_ids=block_ids,
            logit_rows=array("I", range(len(token_ids))),
            logits=logits.reshape(-1),
        )
        assert best == logits.argmax(axis=1).tolist()
        return logits

    def prefill(self, sequence: int, token_ids: Sequence[int], chunk: int) -> NDArray[np.float32]:
        """Append tokens to one sequence in chunks; logits of all of them."""
        parts = [token_ids[start : start + chunk] for start in range(0, len(token_ids), chunk)]
        return np.concatenate([self.step({sequence: part}) for part in parts])


MakeDriver = Callable[..., Driver]


@pytest.fixture
def make_driver() -> MakeDriver:
    """Make a driver for a model given as configuration and tensors."""

    def make(
        config: ModelConfig,
        tensors: dict[str, RawTensor],
        *,
        num_sequences: int = 1,
        num_threads: int = 1,
        instruction_set: str = "auto",
        block_size: int = BLOCK_SIZE,
        **forms: str,
    ) -> Driver:
        builder = make_builder(config, num_threads=num_threads)
        for name, tensor in tensors.items():
            builder.insert(name, tensor.storage, tensor.shape, tensor.data, tensor.num_interleaved_heads)
        runner = deepinfer_cpu.Runner(
            builder.finish(),
            num_blocks=num_sequences * BLOCKS_PER_SEQUENCE,
            block_size=block_size,
            num_threads=num_threads,
            instruction_set=instruction_set,
            **forms,
        )
        return Driver(runner, config.vocab_size, num_sequences, block_size)

    return make


def make_builder(config: ModelConfig, *, num_threads: int = 1) -> deepinfer_cpu.WeightsBuilder:
    """An empty builder for a configuration."""
    return deepinfer_cpu.WeightsBuilder(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_layers=config.num_layers,
        num_qo_heads=config.num_qo_heads,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.rms_norm_eps,
        rotary_frequencies=compute_inverse_frequencies(config).tolist(),
        sliding_window=config.sliding_window,
        num_threads=num_threads,
    )
