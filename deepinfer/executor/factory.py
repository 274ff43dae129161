"""Choose and build the executor for a model."""

from __future__ import annotations

from collections.abc import Callable

from deepinfer.config import EngineConfig
from deepinfer.errors import ConfigError
from deepinfer.executor.base import Executor
from deepinfer.loader.checkpoint import Checkpoint


def make_executor(
    config: EngineConfig, checkpoint: Checkpoint, *, progress: Callable[[int, int], None] | None = None
) -> Executor:
    """Load the model behind the executor that the configuration asks for. Torch is imported here, not before.

    Args:
        progress: called with (bytes of the model file loaded, bytes to load).

    Raises:
        ConfigError: the device or operators asked for are not there, or memory does not suffice.
    """
    if config.cpu_backend == "native":
        raise ConfigError("cpu_backend is native, but the native CPU operators are not installed; use auto or torch")
    from deepinfer.executor.model_runner import ModelRunner

    return ModelRunner(config, checkpoint, progress=progress)
