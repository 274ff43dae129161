import logging
from dataclasses import replace
from pathlib import Path

import pytest

from deepinfer import AsyncEngine, CacheConfig, ConfigError, EngineConfig, SchedulerConfig, WeightLoadError
from deepinfer.engine import build
from deepinfer.engine.build import describe_kv_cache, make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer.loader.checkpoint import TokenizerSpec

CONFIG = EngineConfig(model=Path("m"), cache=CacheConfig(block_size=16))


def make_executor(num_blocks=64, context=512):
    model = make_scripted_model_config(max_position_embeddings=context)
    return ScriptedExecutor(num_blocks=num_blocks, block_size=16, model_config=model)


def make_core(config=CONFIG, **options):
    return make_engine_core(config, make_executor(**options), model_identity=b"")


def test_the_context_is_the_models_own_unless_blocks_are_too_few():
    assert make_core().rules.max_model_len == 512
    assert make_core(num_blocks=10).rules.max_model_len == 160
    assert make_core(replace(CONFIG, max_model_len=100)).rules.max_model_len == 100


def test_a_context_beyond_the_model_or_the_cache_is_refused():
    with pytest.raises(ConfigError, match="max_model_len is 513, but the model was made for 512 positions"):
        make_core(replace(CONFIG, max_model_len=513))
    with pytest.raises(ConfigError, match="max_model_len is 161, but the KV cache holds 160 tokens"):
        make_core(replace(CONFIG, max_model_len=161), num_blocks=10)


def test_the_start_up_line():
    assert describe_kv_cache(make_core(num_blocks=80)) == "KV cache: 1,280 tokens, 2.5 requests of full length (512)"


def test_a_missing_model_is_one_sentence(tmp_path):
    with pytest.raises(WeightLoadError, match="there is no model at"):
        AsyncEngine.from_config(EngineConfig(model=tmp_path / "absent.gguf"))


class FakeCheckpoint:
    path = Path("m")
    config = make_scripted_model_config(max_position_embeddings=512)
    tokenizer = TokenizerSpec()
    chat_template = None
    default_model_name = "m"


def test_build_engine_logs_what_it_built(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("deepinfer.loader.open.open_checkpoint", lambda path: FakeCheckpoint())
    monkeypatch.setattr("deepinfer.executor.factory.make_executor", lambda *args, **kwargs: make_executor())
    built = build.build_engine(CONFIG)
    assert built.core.rules.eos_token_ids == {0}
    assert "scripted executor" in caplog.text
    assert "KV cache: 1,024 tokens, 2.0 requests of full length (512)" in caplog.text


def test_an_executor_that_cannot_be_used_is_closed(monkeypatch):
    closed = []
    executor = make_executor(num_blocks=4)
    executor.close = lambda: closed.append(True)
    monkeypatch.setattr("deepinfer.loader.open.open_checkpoint", lambda path: FakeCheckpoint())
    monkeypatch.setattr("deepinfer.executor.factory.make_executor", lambda *args, **kwargs: executor)
    with pytest.raises(ConfigError):
        build.build_engine(replace(CONFIG, max_model_len=300))
    assert closed == [True]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs"),
        ({"max_num_seqs": 100, "max_num_batched_tokens": 99}, "max_num_batched_tokens"),
        ({"max_lookahead": 0}, "max_lookahead"),
        ({"max_wait_seconds": 0.0}, "max_wait_seconds"),
        ({"target_itl_seconds": -1.0}, "target_itl_seconds"),
        ({"target_itl_seconds": float("nan")}, "target_itl_seconds"),
        ({"min_prefill_tokens": 0}, "min_prefill_tokens"),
    ],
)
def test_scheduler_options_out_of_range(options, name):
    with pytest.raises(ConfigError, match=name):
        SchedulerConfig(**options)
