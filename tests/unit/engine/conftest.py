from pathlib import Path

import pytest

from deepinfer import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config


def build_scripted_core(
    *,
    num_blocks=64,
    block_size=16,
    caching=True,
    vocab_size=200,
    max_model_len=256,
    executor_type=None,
    drafts=None,
    **limits,
):
    """An engine whose executor computes tokens from what it reads back through its blocks.

    `drafts` guesses tokens ahead. `executor_type(num_blocks=..., block_size=..., model_config=...)` replaces the
    scripted executor.
    """
    executor = (executor_type or ScriptedExecutor)(
        num_blocks=num_blocks,
        block_size=block_size,
        model_config=make_scripted_model_config(vocab_size=vocab_size, max_position_embeddings=max_model_len),
    )
    config = EngineConfig(
        model=Path("scripted"),
        cache=CacheConfig(block_size=block_size, enable_prefix_caching=caching),
        scheduler=SchedulerConfig(**{"max_num_seqs": 8, "max_num_batched_tokens": 64, **limits}),
    )
    return make_engine_core(config, executor, model_identity=b"", drafts=drafts)


@pytest.fixture
def make_core():
    return build_scripted_core
