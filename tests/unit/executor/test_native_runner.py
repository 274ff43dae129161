"""Plans through the native executor: argmax rows, sampled rows, logprobs, errors; and when it is chosen."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepinfer.config import CacheConfig, EngineConfig
from deepinfer.errors import ConfigError, WeightLoadError
from deepinfer.executor.factory import make_executor
from deepinfer.executor.native_weights import find_native_obstacle
from deepinfer.outputs import KnownRequestData, NewRequestData, SchedulerOutput
from deepinfer.sampling_params import SamplingParams
from deepinfer.testing.reference_model import compute_reference_logits
from deepinfer.testing.tiny_models import make_random_tensors, make_tiny_config

pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

MODEL_CONFIG = make_tiny_config("llama", hidden_size=64, intermediate_size=64, num_qo_heads=4)
CONFIG = EngineConfig(
    model=Path("tiny"), device="cpu", num_threads=2, cache=CacheConfig(block_size=16, kv_cache_memory_bytes=1 << 20)
)


class TinyCheckpoint:
    """A checkpoint that lies in memory."""

    path = Path("tiny")

    def __init__(self, config, tensors):
        self.config = config
        self.tensors = tensors
        self.num_releases = 0

    def release_pages(self):
        self.num_releases += 1


@pytest.fixture
def checkpoint():
    return TinyCheckpoint(MODEL_CONFIG, make_random_tensors(MODEL_CONFIG, "q8_0"))


@pytest.fixture
def executor(checkpoint):
    executor = make_executor(CONFIG, checkpoint)
    yield executor
    executor.close()


def new_request(name, token_ids, block_ids, **params):
    params = SamplingParams(**{"temperature": 0, "seed": 1} | params)
    return NewRequestData(name, token_ids, len(token_ids), params, frozenset({257}), block_ids, 0)


def test_the_native_executor_is_chosen_and_describes_itself(executor, checkpoint):
    assert executor.describe().startswith("native CPU operators")
    assert "q8_0" in executor.describe()
    assert "2 threads" in executor.describe()
    assert executor.num_blocks == (1 << 20) // (2 * MODEL_CONFIG.num_kv_values_per_token * 16)
    assert checkpoint.num_releases == 1


def test_argmax_and_sampled_rows_agree_with_the_reference(executor, checkpoint):
    token_ids = np.random.default_rng(0).integers(0, 256, 21).tolist()
    expected = compute_reference_logits(MODEL_CONFIG, checkpoint.tensors, token_ids)
    plan = SchedulerOutput(
        scheduled_new_requests=[
            new_request("argmax", token_ids, [4, 9]),
            new_request("logprobs", token_ids, [5, 2], logprobs=3, prompt_logprobs=2),
            new_request("biased", token_ids, [6, 1], logit_bias={7: 100.0}),
            new_request("unfinished", token_ids, [3, 8]),
        ],
        num_scheduled_tokens={"unfinished": 20, "argmax": 21, "logprobs": 21, "biased": 21},
    )
    output = executor.execute(plan)
    best = int(expected[-1].argmax())
    assert output.sampled_token_ids == {"argmax": [best], "logprobs": [best], "biased": [7]}
    assert output.errors == {}
    log_probabilities = expected - np.log(np.exp(expected).sum(axis=1, keepdims=True))
    (entry,) = output.logprobs["logprobs"]
    assert entry.token_id == best
    assert entry.logprob == pytest.approx(log_probabilities[-1, best], abs=0.02)
    assert len(entry.top) == 3
    prompt_entries = output.prompt_logprobs["logprobs"]
    assert [entry.token_id for entry in prompt_entries] == token_ids[1:]
    for position, entry in enumerate(prompt_entries):
        assert entry.logprob == pytest.approx(log_probabilities[position, token_ids[position + 1]], abs=0.02)


def test_decode_appends_and_forgets(executor, checkpoint):
    token_ids = [5, 6, 7]
    first = executor.execute(
        SchedulerOutput(scheduled_new_requests=[new_request("a", token_ids, [2])], num_scheduled_tokens={"a": 3})
    )
    (token_id,) = first.sampled_token_ids["a"]
    decode = SchedulerOutput(
        scheduled_known_requests=[KnownRequestData("a", [], 3)], num_scheduled_tokens={"a": 1}, block_copies=[(2, 5)]
    )
    second = executor.execute(decode)
    expected = compute_reference_logits(MODEL_CONFIG, checkpoint.tensors, [*token_ids, token_id])
    assert second.sampled_token_ids["a"] == [int(expected[-1].argmax())]
    assert executor.execute(SchedulerOutput(finished_request_ids=["a"])).sampled_token_ids == {}
    with pytest.raises(KeyError):
        executor.execute(decode)


def test_rows_that_are_not_finite_are_errors_of_their_request(checkpoint):
    values = np.random.default_rng(0).standard_normal((MODEL_CONFIG.vocab_size, 64)).astype(np.float32)
    values[9] = 0.0
    embeddings = replace(checkpoint.tensors["embed_tokens"], storage="f32", data=values.reshape(-1).view(np.uint8))
    config = replace(MODEL_CONFIG, rms_norm_eps=1e-50)
    executor = make_executor(CONFIG, TinyCheckpoint(config, checkpoint.tensors | {"embed_tokens": embeddings}))
    plan = SchedulerOutput(
        scheduled_new_requests=[
            new_request("good", [1, 2], [0]),
            new_request("bad", [1, 9], [1]),
            new_request("bad too", [9], [2], logprobs=1),
        ],
        num_scheduled_tokens={"good": 2, "bad": 2, "bad too": 1},
    )
    output = executor.execute(plan)
    assert list(output.sampled_token_ids) == ["good"]
    assert set(output.errors) == {"bad", "bad too"}
    assert all("not finite" in message for message in output.errors.values())
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.execute(plan)


@pytest.mark.parametrize(
    ("config", "model_config", "storage", "message"),
    [
        (replace(CONFIG, dtype="float32"), MODEL_CONFIG, "q8_0", "dtype is float32"),
        (replace(CONFIG, cache=CacheConfig(kv_cache_dtype="bfloat16")), MODEL_CONFIG, "q8_0", "kv_cache_dtype"),
        (CONFIG, MODEL_CONFIG, "mxfp4", "stored as mxfp4"),
        (CONFIG, replace(MODEL_CONFIG, head_dim=24, num_qo_heads=4), "q8_0", "head_dim is 24"),
        (CONFIG, replace(MODEL_CONFIG, intermediate_size=40), "q8_0", "intermediate_size is 40"),
    ],
)
def test_what_is_not_covered_is_said(checkpoint, config, model_config, storage, message):
    tensors = {name: replace(tensor, storage=storage) for name, tensor in checkpoint.tensors.items()}
    checkpoint = TinyCheckpoint(model_config, tensors)
    assert message in find_native_obstacle(config, checkpoint)
    with pytest.raises(ConfigError, match=message):
        make_executor(replace(config, cpu_backend="native"), checkpoint)


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, cpu_backend="torch", cpu_activations="fast"),
        replace(CONFIG, cpu_backend="torch", cache=CacheConfig(kv_cache_dtype="int8")),
    ],
)
def test_forms_that_only_native_operators_have_are_refused_elsewhere(checkpoint, config):
    with pytest.raises(ConfigError, match="only the native CPU operators have"):
        make_executor(config, checkpoint)


def test_a_damaged_tensor_is_named(checkpoint):
    damaged = replace(checkpoint.tensors["lm_head"], data=checkpoint.tensors["lm_head"].data[:-34])
    with pytest.raises(WeightLoadError, match=r"lm_head.*damaged"):
        make_executor(CONFIG, TinyCheckpoint(MODEL_CONFIG, checkpoint.tensors | {"lm_head": damaged}))


def test_the_native_path_imports_no_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import deepinfer.executor.factory, deepinfer.executor.native_runner\n"
        "assert 'deepinfer_cpu' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
