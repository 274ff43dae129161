"""Configuration: frozen objects, validated once, passed down."""

from deepinfer.config.cache import CacheConfig
from deepinfer.config.engine import EngineConfig
from deepinfer.config.model import ModelConfig, RopeScaling
from deepinfer.config.scheduler import SchedulerConfig
from deepinfer.config.speculative import SpeculativeConfig

__all__ = ["CacheConfig", "EngineConfig", "ModelConfig", "RopeScaling", "SchedulerConfig", "SpeculativeConfig"]
