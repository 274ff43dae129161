"""The torch executor on a tiny model: plans in, tokens out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.errors import ConfigError
from deepinfer.executor.factory import make_executor
from deepinfer.executor.model_runner import ModelRunner
from deepinfer.loader import open_checkpoint
from deepinfer.outputs import KnownRequestData, NewRequestData, SchedulerOutput
from deepinfer.sampling_params import SamplingParams
from deepinfer.testing import make_random_tensors, make_tiny_config, write_gguf

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    config = make_tiny_config("llama")
    write_gguf(path, config, make_random_tensors(config, "q8_0"))
    return path


def make_runner(path, progress=None, **options):
    config = EngineConfig(
        model=path,
        device="cpu",
        num_threads=1,
        cpu_backend="torch",
        cache=CacheConfig(block_size=16, kv_cache_memory_bytes=64 * 16 * 1024, **options),
    )
    return ModelRunner(config, open_checkpoint(path), progress=progress)


@pytest.fixture
def runner(model_path):
    return make_runner(model_path)


def new_request(name, token_ids, block_ids, params=GREEDY, num_computed=0, num_prompt=None):
    num_prompt = len(token_ids) if num_prompt is None else num_prompt
    return NewRequestData(name, token_ids, num_prompt, params, frozenset(), block_ids, num_computed)


def start(runner, *requests, counts=None):
    counts = counts or {item.request_id: len(item.token_ids) - item.num_computed_tokens for item in requests}
    return runner.execute(SchedulerOutput(list(requests), num_scheduled_tokens=counts))


def proceed(runner, **num_computed):
    known = [KnownRequestData(name, [], count) for name, count in num_computed.items()]
    return runner.execute(SchedulerOutput([], known, num_scheduled_tokens=dict.fromkeys(num_computed, 1)))


def generate(runner, name, prompt, blocks, num_tokens):
    output = list(start(runner, new_request(name, prompt, blocks)).sampled_token_ids[name])
    while len(output) < num_tokens:
        output += proceed(runner, **{name: len(prompt) + len(output) - 1}).sampled_token_ids[name]
    return output


def prompt(seed, length):
    return np.random.default_rng(seed).integers(0, 256, length).tolist()


def test_a_request_alone_and_in_a_batch(runner):
    alone = {str(seed): generate(runner, f"alone{seed}", prompt(seed, 9 + seed), [0, 1, 2, 3], 6) for seed in range(4)}
    requests = [new_request(str(seed), prompt(seed, 9 + seed), [10 + 2 * seed, 11 + 2 * seed]) for seed in range(4)]
    outputs = start(runner, *requests).sampled_token_ids
    for step in range(5):
        result = proceed(runner, **{str(seed): 9 + seed + step for seed in range(4)})
        for name, token_ids in result.sampled_token_ids.items():
            outputs[name] += token_ids
    assert outputs == alone


def test_mid_prefill_samples_nothing(runner):
    whole = generate(runner, "whole", prompt(1, 20), [0, 1], 1)
    result = start(runner, new_request("r", prompt(1, 20), [2, 3]), counts={"r": 7})
    assert result.sampled_token_ids == {}
    plan = SchedulerOutput([], [KnownRequestData("r", [], 7)], num_scheduled_tokens={"r": 13})
    assert runner.execute(plan).sampled_token_ids == {"r": whole}


def test_copied_blocks_hold_the_same(runner):
    whole = generate(runner, "whole", prompt(2, 20), [5, 6], 1)
    request = new_request("copy", prompt(2, 20), [8, 9], num_computed=19)
    plan = SchedulerOutput([request], num_scheduled_tokens={"copy": 1}, block_copies=[(5, 8), (6, 9)])
    assert runner.execute(plan).sampled_token_ids == {"copy": whole}


def test_a_plan_of_copies_alone(runner):
    generate(runner, "whole", prompt(2, 5), [5], 1)
    runner.execute(SchedulerOutput(block_copies=[(5, 7)]))
    assert torch.equal(runner._kv_cache[:, :, 5, :5], runner._kv_cache[:, :, 7, :5])


def test_logprobs_of_output_and_prompt(runner):
    params = SamplingParams(temperature=0, logprobs=3, prompt_logprobs=2)
    token_ids = prompt(3, 100)
    result = start(runner, new_request("r", token_ids, list(range(7)), params))
    (entry,) = result.logprobs["r"]
    assert [entry.token_id] == result.sampled_token_ids["r"]
    assert (entry.rank, len(entry.top), entry.top[0]) == (1, 3, (entry.token_id, entry.logprob))
    entries = result.prompt_logprobs["r"]
    assert [item.token_id for item in entries] == token_ids[1:]
    assert all(len(item.top) == 2 and item.logprob <= item.top[0][1] < 0 for item in entries)


def test_prompt_logprobs_in_chunks_are_the_same(runner):
    params = SamplingParams(temperature=0, prompt_logprobs=0)
    token_ids = prompt(4, 50)
    whole = start(runner, new_request("whole", token_ids, [0, 1, 2, 3], params)).prompt_logprobs["whole"]
    chunked = []
    request = new_request("r", token_ids, [4, 5, 6, 7], params)
    chunked += start(runner, request, counts={"r": 1}).prompt_logprobs["r"]
    for computed, count in ((1, 17), (18, 31)):
        plan = SchedulerOutput([], [KnownRequestData("r", [], computed)], num_scheduled_tokens={"r": count})
        chunked += runner.execute(plan).prompt_logprobs["r"]
    last = proceed(runner, r=49)
    assert "r" not in last.prompt_logprobs  # the last prompt token predicts output
    assert [item.token_id for item in chunked] == [item.token_id for item in whole] == token_ids[1:]
    np.testing.assert_allclose([item.logprob for item in chunked], [item.logprob for item in whole], rtol=0, atol=1e-5)


def test_logits_that_are_not_finite_end_one_request_only(runner):
    good = generate(runner, "alone", prompt(5, 10), [0], 1)
    start(runner, new_request("bad", prompt(6, 10), [2]), counts={"bad": 9})
    runner._kv_cache[0, 1, 2, 3] = torch.nan
    plan = SchedulerOutput(
        [new_request("good", prompt(5, 10), [4])],
        [KnownRequestData("bad", [], 9)],
        num_scheduled_tokens={"bad": 1, "good": 10},
    )
    result = runner.execute(plan)
    assert result.sampled_token_ids == {"good": good}
    assert "not finite" in result.errors["bad"]


def test_progress_reaches_the_end(model_path):
    calls = []
    make_runner(model_path, progress=lambda done, total: calls.append((done, total)))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1][0] == calls[-1][1] > 0


def test_half_precision_of_weights_and_cache(model_path):
    config = EngineConfig(model=model_path, dtype="bfloat16", device="cpu", num_threads=1, cpu_backend="torch")
    runner = ModelRunner(config, open_checkpoint(model_path))
    assert "weights bfloat16, KV cache bfloat16" in runner.describe()
    assert len(generate(runner, "r", prompt(7, 20), [0, 1], 3)) == 3
    runner = make_runner(model_path, kv_cache_dtype="float16")
    assert "weights float32, KV cache float16" in runner.describe()
    assert len(generate(runner, "r", prompt(7, 20), [0, 1], 3)) == 3


def test_memory_of_the_cache_is_reserved_but_not_touched(model_path):
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    before = psutil.Process().memory_info().rss
    config = EngineConfig(
        model=model_path,
        device="cpu",
        num_threads=1,
        cpu_backend="torch",
        cache=CacheConfig(block_size=16, kv_cache_memory_bytes=2**31),
        scheduler=SchedulerConfig(),
    )
    runner = ModelRunner(config, open_checkpoint(model_path))
    assert runner.num_blocks == 2**31 // (16 * 1024)
    assert psutil.Process().memory_info().rss - before < 2**29


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_missing_device_is_one_sentence(model_path):
    with pytest.raises(ConfigError, match="device is cuda, but torch finds no CUDA device"):
        make_executor(EngineConfig(model=model_path, device="cuda"), open_checkpoint(model_path))
