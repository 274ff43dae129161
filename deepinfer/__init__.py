"""Inference engine for DeepSeek V4 / V4.1 and other open models. Importing it imports no torch, touches no device."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig, SpeculativeConfig
    from deepinfer.engine.async_engine import AsyncEngine
    from deepinfer.engine.llm import LLM, RequestOutput
    from deepinfer.errors import (
        CapacityError,
        ConfigError,
        EngineDeadError,
        EngineError,
        InvalidSamplingParamsError,
        PromptTooLongError,
        QueueFullError,
        RequestAbortedError,
        RequestError,
        WeightLoadError,
    )
    from deepinfer.outputs import EngineOutput, RequestStats, TokenLogprob
    from deepinfer.request import FinishReason
    from deepinfer.sampling_params import SamplingParams
    from deepinfer.structured import GrammarSpec

_HOMES = {
    "LLM": "engine.llm",
    "RequestOutput": "engine.llm",
    "AsyncEngine": "engine.async_engine",
    "EngineConfig": "config",
    "CacheConfig": "config",
    "SchedulerConfig": "config",
    "SpeculativeConfig": "config",
    "SamplingParams": "sampling_params",
    "GrammarSpec": "structured",
    "EngineOutput": "outputs",
    "RequestStats": "outputs",
    "TokenLogprob": "outputs",
    "FinishReason": "request",
    "EngineError": "errors",
    "ConfigError": "errors",
    "RequestError": "errors",
    "PromptTooLongError": "errors",
    "InvalidSamplingParamsError": "errors",
    "CapacityError": "errors",
    "QueueFullError": "errors",
    "EngineDeadError": "errors",
    "RequestAbortedError": "errors",
    "WeightLoadError": "errors",
}

__all__ = [
    "LLM",
    "AsyncEngine",
    "CacheConfig",
    "CapacityError",
    "ConfigError",
    "EngineConfig",
    "EngineDeadError",
    "EngineError",
    "EngineOutput",
    "FinishReason",
    "GrammarSpec",
    "InvalidSamplingParamsError",
    "PromptTooLongError",
    "QueueFullError",
    "RequestAbortedError",
    "RequestError",
    "RequestOutput",
    "RequestStats",
    "SamplingParams",
    "SchedulerConfig",
    "SpeculativeConfig",
    "TokenLogprob",
    "WeightLoadError",
    "__version__",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return __all__
