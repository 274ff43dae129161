"""From an engine configuration to something the application can serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deepinfer.config import EngineConfig
from deepinfer_api.backends.engine import EngineBackend
from deepinfer_api.codec import Codec


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready.

    Attributes:
        name: id it is served under.
        executor: one line: device, operators, number types, threads.
        kv_cache: one line: how many tokens and requests fit.
    """

    backend: EngineBackend
    codec: Codec
    name: str
    executor: str
    kv_cache: str


def load_model(config: EngineConfig, *, progress: Callable[[int, int], None] | None = None) -> LoadedModel:
    """Open the model, load its weights, allocate the KV cache, build the codec, start the engine's thread.

    Args:
        progress: called with (bytes loaded, bytes to load).

    Raises:
        ConfigError, WeightLoadError: one sentence that says what to do.
    """
    from deepinfer.engine.async_engine import AsyncEngine
    from deepinfer.engine.build import build_engine, describe_kv_cache
    from deepinfer_api.recipe_codec import make_codec

    built = build_engine(config, progress=progress)
    try:
        codec = make_codec(built.checkpoint)
    except BaseException:
        built.core.close()
        raise
    engine = AsyncEngine(built.core, checkpoint=built.checkpoint)
    return LoadedModel(
        backend=EngineBackend(engine),
        codec=codec,
        name=config.served_model_name or built.checkpoint.default_model_name,
        executor=built.core.executor.describe(),
        kv_cache=describe_kv_cache(built.core),
    )
