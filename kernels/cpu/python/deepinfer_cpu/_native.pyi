from collections.abc import Sequence
from typing import final

from typing_extensions import Buffer

__version__: str

class CpuError(Exception):
    """Base of all errors of this package."""

class ShapeError(CpuError):
    """A size or option is impossible or not covered."""

class TensorError(CpuError):
    """A tensor is missing, damaged, or stored in a form not covered."""

class PlanError(CpuError):
    """A step's plan does not fit the model or the cache."""

class ThreadError(CpuError):
    """The compute threads are gone: the process was forked, or a thread stopped unexpectedly."""

def instruction_set() -> str:
    """Name of the fastest instruction set that this processor has kernels for."""

def available_threads() -> int:
    """Threads that this process may use: its affinity and its control group's quota count."""

def covers_storage(storage: str) -> bool:
    """Whether weights stored as `storage` ("q4_1", "f32", ...) can be computed with."""

@final
class Weights:
    """A complete model."""

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that the matrices take."""

@final
class WeightsBuilder:
    """Takes tensors in any order and repacks each at once."""

    def __new__(
        cls,
        *,
        vocab_size: int,
        hidden_size: int,
        intermediate_size: int,
        num_layers: int,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rms_norm_eps: float,
        rotary_frequencies: Sequence[float],
        sliding_window: int | None = None,
        num_threads: int | None = None,
    ) -> WeightsBuilder: ...
    def insert(
        self, name: str, storage: str, shape: Sequence[int], data: Buffer, num_interleaved_heads: int = 0
    ) -> None:
        """Take one tensor; `data` holds its bytes as they lie in the file. Raises TensorError."""

    def finish(self) -> Weights:
        """The model, once every tensor was given; the builder is empty afterwards. Raises TensorError."""

@final
class Runner:
    """Computes steps of one model over a paged cache of keys and values."""

    def __new__(
        cls,
        weights: Weights,
        *,
        num_blocks: int,
        block_size: int,
        num_threads: int | None = None,
        instruction_set: str = "auto",
    ) -> Runner: ...
    def step(
        self,
        *,
        token_ids: Buffer,
        row_starts: Buffer,
        first_positions: Buffer,
        table_starts: Buffer,
        block_ids: Buffer,
        logit_rows: Buffer,
        block_copies: Sequence[tuple[int, int]] = ...,
        logits: Buffer | None = None,
    ) -> list[int | None]:
        """Run one step and return the best token of each logit row, or None where a logit is not finite.

        All arrays hold uint32: token_ids [T], row_starts [R + 1], first_positions [R], table_starts [R + 1], block_ids
        (block tables one after the other), logit_rows [L]. `logits`, float32 and writable, receives the first rows of
        logits in full, as many as its length holds. The lock of the interpreter is released. Raises PlanError,
        ThreadError.
        """

    @property
    def instruction_set(self) -> str:
        """Name of the instruction set in use."""

    @property
    def num_threads(self) -> int:
        """Threads in use."""

    def profile(self, is_on: bool) -> None:
        """Start (from zero) or stop counting the time of phases."""

    def phase_seconds(self) -> list[tuple[str, float, float]]:
        """Seconds of the caller's thread in each kind of phase: (name, working, waiting)."""
