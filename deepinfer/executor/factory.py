"""Choose and build the executor for a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from deepinfer.config import EngineConfig
from deepinfer.errors import ConfigError
from deepinfer.executor.base import Executor
from deepinfer.executor.native_weights import find_native_obstacle
from deepinfer.loader.checkpoint import Checkpoint

# Without these, torch would find no GPU and need not be asked: importing it costs seconds and 300 MB.
_GPU_DRIVERS: Final = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))


def make_executor(
    config: EngineConfig, checkpoint: Checkpoint, *, progress: Callable[[int, int], None] | None = None
) -> Executor:
    """Load the model behind the executor that the configuration asks for; torch is imported only where it computes.

    On a CPU, `cpu_backend` auto takes the native operators where they cover model and configuration.

    Args:
        progress: called with (bytes of the model file loaded, bytes to load).

    Raises:
        ConfigError: the device or operators asked for are not there, or memory does not suffice.
        WeightLoadError: a tensor of the model file is damaged.
    """
    obstacle = find_native_obstacle(config, checkpoint)
    if config.cpu_backend == "native" and (config.device == "cuda" or obstacle is not None):
        reason = obstacle or "device is cuda"
        raise ConfigError(f"cpu_backend is native, but {reason}; use cpu_backend auto or torch")
    if config.cpu_backend != "torch" and obstacle is None and not _computes_on_gpu(config):
        from deepinfer.executor.native_runner import NativeRunner

        return NativeRunner(config, checkpoint, progress=progress)
    reason = obstacle or f"device is {config.device} and cpu_backend {config.cpu_backend}"
    for name, value, native in (
        ("cpu_activations", config.cpu_activations, "fast"),
        ("kv_cache_dtype", config.cache.kv_cache_dtype, "int8"),
    ):
        if value == native:
            raise ConfigError(f"{name} is {value}, which only the native CPU operators have; {reason}")
    from deepinfer.executor.model_runner import ModelRunner

    return ModelRunner(config, checkpoint, progress=progress)


def _computes_on_gpu(config: EngineConfig) -> bool:
    if config.device != "auto" or config.cpu_backend == "native":
        return config.device == "cuda"
    if not any(path.exists() for path in _GPU_DRIVERS):
        return False
    import torch

    return torch.cuda.is_available()
