"""From a configuration to a running engine: opens the model, lets the executor allocate, sizes the context."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.engine.admission import AdmissionRules
from deepinfer.engine.core import EngineCore
from deepinfer.engine.row_timing import time_rows
from deepinfer.errors import ConfigError
from deepinfer.executor.base import Executor
from deepinfer.kvcache import KVCacheManager
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer.scheduler import DraftPolicy, Scheduler
from deepinfer.speculative import make_speculator

logger = logging.getLogger(__name__)

LoadProgress = Callable[[int, int], None]
"""Called with (bytes of weights loaded, bytes in all)."""


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine ready to step, and the model file it came from."""

    core: EngineCore
    checkpoint: Checkpoint
    config: EngineConfig


def build_engine(config: EngineConfig, *, progress: LoadProgress | None = None) -> BuiltEngine:
    """Open the model, load it and allocate the KV cache.

    Raises:
        ConfigError: a value does not fit this model or machine.
        WeightLoadError: the model file is missing, damaged, or not covered.
    """
    from deepinfer.executor.factory import make_executor
    from deepinfer.loader.open import open_checkpoint

    checkpoint = open_checkpoint(config.model)
    _check_max_model_len(config, checkpoint.config)
    executor = make_executor(config, checkpoint, progress=progress)
    speculator = make_speculator(config.speculative)
    identity = f"{checkpoint.path}|{checkpoint.config}|{executor.describe()}".encode()
    try:
        core = make_engine_core(config, executor, model_identity=identity, drafts=speculator)
        if speculator is not None and speculator.chooses_lengths:
            time_rows(executor, speculator.curve, max_rows=config.scheduler.max_num_batched_tokens)
    except BaseException:
        executor.close()
        raise
    logger.info("executor: %s", executor.describe())
    logger.info("%s", describe_kv_cache(core))
    return BuiltEngine(core, checkpoint, config)


def make_engine_core(
    config: EngineConfig,
    executor: Executor,
    *,
    model_identity: bytes,
    drafts: DraftPolicy | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> EngineCore:
    """Join a scheduler to an executor that has its blocks; `drafts` guesses tokens ahead.

    Raises:
        ConfigError: max_model_len fits neither the model nor the blocks.
    """
    model_config = executor.model_config
    _check_max_model_len(config, model_config)
    capacity = executor.num_blocks * config.cache.block_size
    if config.max_model_len is not None and config.max_model_len > capacity:
        raise ConfigError(
            f"max_model_len is {config.max_model_len}, but the KV cache holds {capacity} tokens; "
            "lower --max-model-len or raise --kv-cache-memory"
        )
    max_model_len = min(config.max_model_len or model_config.max_position_embeddings, capacity)
    cache = KVCacheManager(
        num_blocks=executor.num_blocks,
        block_size=config.cache.block_size,
        enable_prefix_caching=config.cache.enable_prefix_caching,
        model_identity=model_identity,
        ttl_seconds=config.cache.ttl_seconds,
        clock=clock,
    )
    rules = AdmissionRules(
        vocab_size=model_config.vocab_size,
        max_model_len=max_model_len,
        eos_token_ids=frozenset(model_config.eos_token_ids),
    )
    scheduler = Scheduler(config.scheduler, cache, drafts=drafts, clock=clock)
    return EngineCore(executor, scheduler, rules, overlaps_steps=config.scheduler.overlap_scheduling, clock=clock)


def describe_kv_cache(core: EngineCore) -> str:
    """The start-up line about the size of the KV cache."""
    cache = core.scheduler.cache
    num_tokens = cache.pool.num_blocks * cache.block_size
    num_requests = num_tokens / (cache.count_blocks(core.rules.max_model_len) * cache.block_size)
    return f"KV cache: {num_tokens:,} tokens, {num_requests:.1f} requests of full length ({core.rules.max_model_len:,})"


def _check_max_model_len(config: EngineConfig, model_config: ModelConfig) -> None:
    limit = model_config.max_position_embeddings
    if config.max_model_len is not None and config.max_model_len > limit:
        raise ConfigError(
            f"max_model_len is {config.max_model_len}, but the model was made for {limit} positions; "
            f"use {limit} or less"
        )
