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

def measure_limits(num_threads: int | None = None) -> tuple[float, float]:
    """(bytes read from memory, 16-bit multiplications with their additions) in a second at most, measured in about a
    second."""

def covers_storage(storage: str) -> bool:
    """Whether weights stored as `storage` ("q4_1", "f32", ...) can be computed with."""

SampleSpec = tuple[int, float, int, float, float, int, int | None, int | None]
"""(logit row, temperature, top k or 0, top p, min p, key of the noise, token if known, number of most likely tokens if
log probabilities are wanted)."""
SampledToken = tuple[int, tuple[float, int, list[tuple[int, float]]] | None]
"""(token, (log probability, rank, most likely tokens))."""

def sample_row(logits: Buffer, sample: SampleSpec) -> SampledToken | None:
    """Choose from one row of float32 logits as `Runner.step` does; None where one is NaN or infinite, or none is
    finite. Raises ShapeError, PlanError."""

@final
class Matrix:
    """A weight matrix, repacked from the bytes of a model file."""

    def __new__(cls, storage: str, rows: int, columns: int, data: Buffer) -> Matrix:
        """Outputs are rows. Raises TensorError."""

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)."""

@final
class Operators:
    """Single operators on contiguous float32 buffers. A row has the bits that it has in a step of `Runner`. Raise
    ShapeError."""

    def __new__(cls, *, num_threads: int | None = None, instruction_set: str = "auto") -> Operators: ...
    def linear(self, matrix: Matrix, x: Buffer, out: Buffer, *, activations: str = "exact") -> None:
        """out[row] = matrix x[row]: x [T, inputs], out [T, outputs]; inputs are a multiple of 32."""

    def grouped_linear(
        self, matrices: Sequence[Matrix], starts: Sequence[int], x: Buffer, out: Buffer, *, activations: str = "exact"
    ) -> None:
        """`linear` for experts of one shape: rows starts[i] .. starts[i + 1] meet matrices[i]."""

    def rms_norm(self, x: Buffer, weight: Buffer, eps: float, out: Buffer) -> None:
        """out = x * weight / sqrt(mean(x^2) + eps): x and out [T, H], weight [H], H a multiple of 8."""

    def silu_and_mul(self, gate_up: Buffer, width: int, out: Buffer) -> None:
        """out = silu(first half) * second half: gate_up [T, 2 * width], out [T, width], width a multiple of 8."""

    def rope(self, x: Buffer, head_dim: int, cosines: Buffer, sines: Buffer) -> None:
        """Turn pairs (i, i + head_dim / 2) in place: x [T, heads, head_dim], cosines and sines [T, head_dim / 2]."""

    def attention(
        self,
        queries: Buffer,
        keys: Buffer,
        values: Buffer,
        out: Buffer,
        *,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        softmax_scale: float,
        sliding_window: int | None = None,
    ) -> None:
        """Causal attention of queries [T, num_qo_heads, head_dim] at the last of the positions of keys and values
        [S, num_kv_heads, head_dim], which are rounded to half precision; head_dim is a multiple of 16."""

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
        activations: str = "exact",
        kv_storage: str = "float16",
    ) -> Runner:
        """A runner with an empty cache. `activations`: "exact" (15 bits) or "fast" (8 bits); `kv_storage`: "float16",
        or "int8" with a scale for each key and value. Raises ShapeError."""

    def step(
        self,
        *,
        token_ids: Buffer,
        row_starts: Buffer,
        first_positions: Buffer,
        table_starts: Buffer,
        block_ids: Buffer,
        logit_rows: Buffer,
        samples: Sequence[SampleSpec] = ...,
        block_copies: Sequence[tuple[int, int]] = ...,
        logits: Buffer | None = None,
    ) -> tuple[list[int | None], list[SampledToken | None]]:
        """Run one step; return for each logit row the best token, or None where a logit is not finite, and the tokens
        of the samples, whose first entries are indices into `logit_rows`.

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
