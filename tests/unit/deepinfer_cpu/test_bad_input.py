"""Wrong tensors, sizes and plans are typed errors that name what is wrong; nothing crashes, nothing changes."""

from __future__ import annotations

import os
from array import array
from dataclasses import replace

import numpy as np
import pytest

from deepinfer.layers.rotary_frequencies import compute_inverse_frequencies
from deepinfer.testing.tiny_models import make_random_tensors, make_tiny_config

deepinfer_cpu = pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

CONFIG = make_tiny_config("llama", hidden_size=64, intermediate_size=64, num_qo_heads=4)
TENSORS = make_random_tensors(CONFIG, "q8_0")
SHAPE = {
    "vocab_size": CONFIG.vocab_size, "hidden_size": CONFIG.hidden_size, "intermediate_size": CONFIG.intermediate_size,
    "num_layers": CONFIG.num_layers, "num_qo_heads": CONFIG.num_qo_heads, "num_kv_heads": CONFIG.num_kv_heads,
    "head_dim": CONFIG.head_dim, "rms_norm_eps": CONFIG.rms_norm_eps,
    "rotary_frequencies": compute_inverse_frequencies(CONFIG).tolist(),
}  # fmt: skip


def insert(builder, tensor):
    builder.insert(tensor.name, tensor.storage, tensor.shape, tensor.data, tensor.num_interleaved_heads)


@pytest.fixture(scope="module")
def weights():
    builder = deepinfer_cpu.WeightsBuilder(**SHAPE)
    for tensor in TENSORS.values():
        insert(builder, tensor)
    return builder.finish()


@pytest.fixture
def runner(weights):
    return deepinfer_cpu.Runner(weights, num_blocks=8, block_size=16, num_threads=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 50}, "hidden_size is 50"),
        ({"intermediate_size": 0}, "intermediate_size is 0"),
        ({"head_dim": 24}, "head_dim is 24"),
        ({"num_qo_heads": 3}, "num_qo_heads is 3"),
        ({"rotary_frequencies": [1.0]}, "number of rotary_frequencies is 1"),
        ({"rotary_frequencies": [float("nan")] * 16}, "rotary_frequencies is NaN"),
        ({"rms_norm_eps": float("inf")}, "rms_norm_eps"),
        ({"sliding_window": 0}, "sliding_window"),
    ],
)
def test_shapes_without_kernels(change, message):
    with pytest.raises(deepinfer_cpu.ShapeError, match=message):
        deepinfer_cpu.WeightsBuilder(**SHAPE | change)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("layers.0.q_proj", {"data": TENSORS["layers.0.q_proj"].data[:-1]}, "the file is damaged"),
        ("layers.0.q_proj", {"storage": "iq2_xs"}, "iq2_xs.*not covered"),
        ("layers.0.q_proj", {"shape": (64, 64)}, "its shape is"),
        ("layers.0.q_proj", {"num_interleaved_heads": 5}, "5 heads"),
        ("layers.0.attn_norm", {"storage": "q8_0"}, "f32, f16 or bf16 is due"),
        ("layers.0.attn_norm", {"data": TENSORS["layers.0.attn_norm"].data[:-2]}, "damaged"),
        ("layers.9.q_proj", {}, "no tensor of that name"),
        ("layers.x.q_proj", {}, "no tensor of that name"),
        ("rope", {}, "no tensor of that name"),
    ],
)
def test_wrong_tensors(name, change, message):
    tensor = TENSORS.get(name, TENSORS["layers.0.q_proj"])
    with pytest.raises(deepinfer_cpu.TensorError, match=message):
        insert(deepinfer_cpu.WeightsBuilder(**SHAPE), replace(tensor, name=name, **change))


@pytest.mark.parametrize("storage", ["q4_0", "q4_1", "q8_0", "q4_k", "q5_k", "q6_k", "f32", "f16", "bf16"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(storage, value):
    config = make_tiny_config("llama")
    tensor = make_random_tensors(config, storage)["layers.1.o_proj"]
    data = tensor.data.copy()
    offset = {"q6_k": 208}.get(storage, 0)
    number = np.array([value], np.float32)
    if storage == "bf16":
        data[:2] = (number.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    elif storage == "f32":
        data[:4] = number.view(np.uint8)
    else:
        data[offset : offset + 2] = number.astype(np.float16).view(np.uint8)
    builder = deepinfer_cpu.WeightsBuilder(
        **SHAPE | {"hidden_size": 256, "intermediate_size": 512, "num_qo_heads": config.num_qo_heads}
    )
    with pytest.raises(deepinfer_cpu.TensorError, match=r"layers\.1\.o_proj.*not finite"):
        insert(builder, replace(tensor, data=data))


def test_a_missing_tensor_is_named():
    builder = deepinfer_cpu.WeightsBuilder(**SHAPE)
    for name, tensor in TENSORS.items():
        if name != "layers.1.up_proj":
            insert(builder, tensor)
    with pytest.raises(deepinfer_cpu.TensorError, match=r"layers\.1\.up_proj: it is missing"):
        builder.finish()
    with pytest.raises(deepinfer_cpu.ShapeError, match="finish"):
        builder.finish()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": 48}, "block_size is 48"),
        ({"block_size": 512}, "block_size is 512"),
        ({"num_blocks": 0}, "num_blocks is 0"),
        ({"num_blocks": 2**32 - 1, "block_size": 256}, "num_blocks"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"num_threads": 10**9}, "num_threads is 1000000000"),
        ({"instruction_set": "sse9"}, "instruction_set is sse9"),
    ],
)
def test_wrong_runner_options(weights, options, message):
    with pytest.raises(deepinfer_cpu.ShapeError, match=message):
        deepinfer_cpu.Runner(weights, **{"num_blocks": 8, "block_size": 16, "num_threads": 1} | options)


GOOD_PLAN = {
    "token_ids": [1, 2, 3], "row_starts": [0, 2, 3], "first_positions": [0, 5], "table_starts": [0, 1, 2],
    "block_ids": [3, 4], "logit_rows": [1, 2],
}  # fmt: skip


def run(runner, plan, **options):
    return runner.step(**{name: array("I", values) for name, values in plan.items()}, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token_ids": [1, 2, CONFIG.vocab_size]}, r"token_ids\[2\] is 272, but must be below 272"),
        ({"token_ids": [1, 2]}, r"row_starts\[2\]"),
        ({"row_starts": [0, 3]}, "row_starts"),
        ({"row_starts": [1, 2, 3]}, r"row_starts\[0\] is 1"),
        ({"row_starts": [0, 3, 3]}, r"row_starts\[2\] is 3"),
        ({"row_starts": [0, 4, 3]}, r"row_starts\[2\] is 3"),
        ({"first_positions": [0, 16]}, r"first_positions\[1\] is 16"),
        ({"first_positions": [0, 2**32 - 1]}, r"first_positions\[1\]"),
        ({"table_starts": [0, 0, 2]}, r"table_starts\[1\]"),
        ({"table_starts": [0, 1, 3]}, r"table_starts\[2\] is 3"),
        ({"block_ids": [3, 8]}, r"block_ids\[1\] is 8, but must be below 8"),
        ({"block_ids": [3, 3]}, r"block_ids\[0\] is 3, but must be written by one"),
        ({"logit_rows": [3]}, r"logit_rows\[0\] is 3"),
        ({"first_positions": []}, "row_starts"),
    ],
)
def test_wrong_plans(runner, change, message):
    with pytest.raises(deepinfer_cpu.PlanError, match=message):
        run(runner, GOOD_PLAN | change)
    assert run(runner, GOOD_PLAN) == run(runner, GOOD_PLAN)


def test_wrong_buffers(runner):
    with pytest.raises(deepinfer_cpu.ShapeError, match="token_ids is an array of format"):
        runner.step(**{name: array("d", values) for name, values in GOOD_PLAN.items()})
    for size in (CONFIG.vocab_size - 1, 3 * CONFIG.vocab_size):
        with pytest.raises(deepinfer_cpu.ShapeError, match="length of logits"):
            run(runner, GOOD_PLAN, logits=np.zeros(size, np.float32))
    read_only = np.zeros(CONFIG.vocab_size, np.float32)
    read_only.flags.writeable = False
    with pytest.raises(deepinfer_cpu.ShapeError, match="read-only"):
        run(runner, GOOD_PLAN, logits=read_only)
    with pytest.raises(deepinfer_cpu.PlanError, match=r"block_copies\[1\] is 8"):
        run(runner, GOOD_PLAN, block_copies=[(0, 1), (2, 8)])


def test_an_empty_plan_does_nothing(runner):
    empty = dict.fromkeys(GOOD_PLAN, ()) | {"row_starts": [0], "table_starts": [0]}
    assert run(runner, empty) == ([], [])
    assert run(runner, GOOD_PLAN | {"logit_rows": []}) == ([], [])


def test_copied_blocks_hold_the_same_keys_and_values(runner):
    prompt = {"token_ids": range(16), "row_starts": [0, 16], "first_positions": [0], "table_starts": [0, 1]}
    run(runner, prompt | {"block_ids": [2], "logit_rows": []})
    decode = {
        "token_ids": [5],
        "row_starts": [0, 1],
        "first_positions": [16],
        "table_starts": [0, 2],
        "logit_rows": [0],
    }
    logits = np.zeros((2, CONFIG.vocab_size), np.float32)
    run(runner, decode | {"block_ids": [2, 3]}, logits=logits[0])
    run(runner, decode | {"block_ids": [7, 6]}, logits=logits[1], block_copies=[(2, 7)])
    assert np.array_equal(logits[0], logits[1])


def test_a_row_that_is_not_finite_fails_alone():
    """Without an epsilon, a token whose embedding is zero has no norm: its row is None, others are not touched."""
    values = np.random.default_rng(0).standard_normal((CONFIG.vocab_size, 64)).astype(np.float32)
    values[9] = 0.0
    embeddings = replace(TENSORS["embed_tokens"], storage="f32", data=values.reshape(-1).view(np.uint8))
    builder = deepinfer_cpu.WeightsBuilder(**SHAPE | {"rms_norm_eps": 0.0})
    for tensor in (TENSORS | {"embed_tokens": embeddings}).values():
        insert(builder, tensor)
    runner = deepinfer_cpu.Runner(builder.finish(), num_blocks=8, block_size=16)
    plan = GOOD_PLAN | {"logit_rows": [0, 1, 2], "first_positions": [0, 0]}
    good, _ = run(runner, plan)
    assert None not in good
    assert run(runner, plan | {"token_ids": [1, 2, 9]})[0] == [*good[:2], None]
    assert run(runner, plan)[0] == good


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_use_after_fork_is_refused(runner):
    child = os.fork()
    if child == 0:
        try:
            run(runner, GOOD_PLAN)
        except deepinfer_cpu.ThreadError as error:
            os._exit(0 if "after the fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(run(runner, GOOD_PLAN)) == 2
