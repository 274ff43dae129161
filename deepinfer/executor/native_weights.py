"""From an opened checkpoint to the packed weights of the native operators. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.errors import ConfigError, WeightLoadError
from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies
from deepinfer.loader.checkpoint import Checkpoint

if TYPE_CHECKING:
    import deepinfer_cpu

# Called with (bytes of the file read so far, bytes to read).
Progress = Callable[[int, int], None]

_COLUMN_BLOCK = 32
_HEAD_BLOCK = 16


def find_native_obstacle(config: EngineConfig, checkpoint: Checkpoint) -> str | None:
    """Why the native operators cannot run a model as configured; None if they can."""
    if find_spec("deepinfer_cpu") is None:
        return "the native CPU operators (open-deepinfer-cpu) are not installed"
    import deepinfer_cpu

    if config.dtype != "auto":
        return f"dtype is {config.dtype}, and the native operators compute with the numbers of the file"
    if config.cache.kv_cache_dtype not in ("auto", "float16", "int8"):
        return f"kv_cache_dtype is {config.cache.kv_cache_dtype}, and the native operators store float16 or int8"
    for tensor in checkpoint.tensors.values():
        if len(tensor.shape) == 2 and not deepinfer_cpu.covers_storage(tensor.storage):
            return f"tensor {tensor.name} is stored as {tensor.storage}, which has no native operator"
    return _find_shape_obstacle(checkpoint.config)


def _find_shape_obstacle(config: ModelConfig) -> str | None:
    sizes = {
        "hidden_size": (config.hidden_size, _COLUMN_BLOCK),
        "intermediate_size": (config.intermediate_size, _COLUMN_BLOCK),
        "num_qo_heads * head_dim": (config.num_qo_heads * config.head_dim, _COLUMN_BLOCK),
        "head_dim": (config.head_dim, _HEAD_BLOCK),
    }
    for name, (size, unit) in sizes.items():
        if size % unit:
            return f"the model's {name} is {size}, and the native operators need a multiple of {unit}"
    return None


def load_native_weights(
    checkpoint: Checkpoint, *, num_threads: int, progress: Progress | None = None
) -> deepinfer_cpu.Weights:
    """Repack every tensor for the native operators; each is read from the file once.

    Raises:
        WeightLoadError: a tensor is damaged or stored in a form without native operators.
        ConfigError: the model's shape has no native operators.
    """
    import deepinfer_cpu

    config = checkpoint.config
    try:
        builder = deepinfer_cpu.WeightsBuilder(
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
        tensors = checkpoint.tensors
        total = sum(tensor.data.nbytes for tensor in tensors.values())
        done = 0
        for name, tensor in tensors.items():
            builder.insert(name, tensor.storage, tensor.shape, tensor.data.data, tensor.num_interleaved_heads)
            done += tensor.data.nbytes
            if progress is not None:
                progress(done, total)
        weights = builder.finish()
    except deepinfer_cpu.ShapeError as error:
        raise ConfigError(f"the native CPU operators do not cover this model: {error}") from error
    except deepinfer_cpu.TensorError as error:
        raise WeightLoadError(f"{checkpoint.path}: {error}") from error
    checkpoint.release_pages()
    return weights
