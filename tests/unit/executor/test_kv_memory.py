"""How many blocks fit, and what the process may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.errors import ConfigError
from deepinfer.executor.host import count_usable_processors, measure_available_memory_bytes
from deepinfer.executor.kv_memory import compute_num_blocks
from deepinfer.testing import make_tiny_config

MODEL = make_tiny_config("llama")  # 2 layers x 2 (k, v) x 2 heads x 32 = 256 values, 1,024 bytes in float32
BYTES_PER_BLOCK = 16 * 1024


def num_blocks(*, memory=None, max_model_len=None, available=10**12, max_num_seqs=4):
    config = EngineConfig(
        model=Path("x"),
        max_model_len=max_model_len,
        cache=CacheConfig(block_size=16, kv_cache_memory_bytes=memory),
        scheduler=SchedulerConfig(max_num_seqs=max_num_seqs),
    )
    return compute_num_blocks(config, MODEL, bytes_per_value=4, available_bytes=available)


def test_the_memory_asked_for_is_used():
    assert num_blocks(memory=20 * BYTES_PER_BLOCK + 5) == 20


def test_without_a_wish_no_more_than_can_be_in_use():
    assert num_blocks() == 4 * 256 // 16
    assert num_blocks(max_model_len=100) == 4 * 7


def test_without_a_wish_a_quarter_of_the_free_memory():
    assert num_blocks(available=4 * 30 * BYTES_PER_BLOCK) == 30


@pytest.mark.parametrize(
    "wishes",
    [{"memory": 1}, {"memory": 15 * BYTES_PER_BLOCK}, {"available": 10**4}, {"max_model_len": 250, "memory": 10**5}],
)
def test_too_little_memory_names_a_sufficient_size(wishes):
    with pytest.raises(ConfigError, match=r"set kv_cache_memory to at least (\d+) bytes") as error:
        num_blocks(**wishes)
    sufficient = int(str(error.value).split("at least ")[1].split()[0])
    assert num_blocks(memory=sufficient, max_model_len=wishes.get("max_model_len")) == 16


def test_more_memory_than_there_is():
    with pytest.raises(ConfigError, match="kv_cache_memory is 1000001 bytes, but 1000000 are free"):
        num_blocks(memory=10**6 + 1, available=10**6)


def test_the_process_may_use_something():
    assert count_usable_processors() >= 1
    assert measure_available_memory_bytes() > 2**20
