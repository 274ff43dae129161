"""A GGUF file as a checkpoint: configuration, names, tokenizer, refusals by name. Loads without torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from deepinfer.errors import WeightLoadError
from deepinfer.loader import open_checkpoint
from deepinfer.quant.gguf_blocks import dequantize, half_split_rows
from deepinfer.testing import FAMILIES, make_random_tensors, make_tiny_config, write_gguf


def write(path, family="llama", *, storage="f32", drop=(), add=(), metadata=None, extra=None, **changes):
    config = make_tiny_config(family, **changes)
    tensors = make_random_tensors(config, storage)
    for name in drop:
        del tensors[name]
    tensors.update(add)
    write_gguf(path, config, tensors, extra_metadata=metadata, extra_tensors=extra)
    return config, tensors


@pytest.mark.parametrize("family", FAMILIES)
def test_configuration_survives(tmp_path, family):
    config, _ = write(tmp_path / "m.gguf", family)
    opened = open_checkpoint(tmp_path / "m.gguf").config
    expected_architecture = "llama" if family == "mistral" else family
    assert opened.architecture == expected_architecture
    for name in ("vocab_size", "hidden_size", "intermediate_size", "num_layers", "num_qo_heads", "num_kv_heads",
                 "head_dim", "max_position_embeddings", "rope_theta", "tie_word_embeddings", "attention_bias",
                 "qk_norm", "sliding_window", "eos_token_ids", "bos_token_id"):  # fmt: skip
        assert getattr(opened, name) == getattr(config, name), name
    assert opened.rms_norm_eps == pytest.approx(config.rms_norm_eps, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("storage", ["f32", "q4_0", "q6_k"])
def test_tensors_survive_in_half_split_order(tmp_path, family, storage):
    _, tensors = write(tmp_path / "m.gguf", family, storage=storage)
    opened = open_checkpoint(tmp_path / "m.gguf").tensors
    assert opened.keys() == tensors.keys()
    for name, tensor in tensors.items():
        values = dequantize(opened[name].data, opened[name].storage, opened[name].shape)
        if opened[name].num_interleaved_heads:
            values = half_split_rows(values, opened[name].num_interleaved_heads)
        np.testing.assert_array_equal(values, dequantize(tensor.data, tensor.storage, tensor.shape), err_msg=name)


def test_only_llama_stores_rotation_pairs_next_to_each_other(tmp_path):
    for family in FAMILIES:
        write(tmp_path / f"{family}.gguf", family)
        tensors = open_checkpoint(tmp_path / f"{family}.gguf").tensors
        counts = {name: tensor.num_interleaved_heads for name, tensor in tensors.items()}
        is_llama = family in ("llama", "mistral")
        assert counts["layers.1.q_proj"] == (8 if is_llama else 0)
        assert counts["layers.1.k_proj"] == (2 if is_llama else 0)
        assert counts["layers.1.v_proj"] == 0
        assert counts["layers.1.o_proj"] == 0


def test_rope_frequency_factors_and_linear_scaling(tmp_path):
    factors = np.linspace(1, 8, 16, dtype=np.float32)
    write(tmp_path / "m.gguf", extra={"rope_freqs.weight": factors})
    assert open_checkpoint(tmp_path / "m.gguf").config.rope_scaling.frequency_factors == tuple(factors.tolist())
    write(tmp_path / "n.gguf", metadata={"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0})
    scaling = open_checkpoint(tmp_path / "n.gguf").config.rope_scaling
    assert (scaling.kind, scaling.factor) == ("linear", 4.0)


def test_tokenizer_and_template(tmp_path):
    write(tmp_path / "Tiny-Model-0.1B.Q4_K_M.gguf")
    checkpoint = open_checkpoint(tmp_path / "Tiny-Model-0.1B.Q4_K_M.gguf")
    assert checkpoint.default_model_name == "tiny-model-0.1b"
    assert checkpoint.tokenizer.bos_token == "<|start|>"
    assert checkpoint.tokenizer.eos_token == "<|end|>"
    assert checkpoint.tokenizer.add_bos_token is False
    assert checkpoint.tokenizer.gguf_vocabulary["pre"] == "smollm"
    assert len(checkpoint.tokenizer.gguf_vocabulary["tokens"]) == 272
    assert checkpoint.chat_template.startswith("{% for message in messages %}")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"llama.expert_count": 8}, "models with experts are not supported"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn' is not supported"),
        ({"llama.rope.dimension_count": 16}, r"llama\.rope\.dimension_count is 16"),
        ({"llama.block_count": "two"}, r"llama\.block_count must be of type int, but is 'two'"),
        ({"llama.block_count": 2**32 - 1}, r"llama\.block_count is 4294967295, but there are only"),
        ({"llama.attention.layer_norm_rms_epsilon": 0.0}, r"rms_norm_eps must be a positive number, but is 0\.0"),
        ({"llama.rope.freq_base": float("nan")}, "rope_theta must be a positive number, but is nan"),
        ({"llama.block_count": None}, r"lacks the metadata key llama\.block_count"),
        ({"llama.attention.head_count_kv": 3}, "must be a multiple of num_kv_heads"),
        ({"llama.embedding_length": 512}, r"tensor token_embd\.weight has shape \(272, 256\)"),
        ({"tokenizer.ggml.model": "t5"}, "tokenizer model 't5' is not supported; supported are gpt2, llama"),
        ({"tokenizer.ggml.eos_token_id": 9999}, "special token id 9999 lies outside the vocabulary"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(tmp_path, metadata, message):
    write(tmp_path / "m.gguf", metadata=metadata)
    with pytest.raises(WeightLoadError, match=message) as error:
        open_checkpoint(tmp_path / "m.gguf")
    assert "m.gguf" in str(error.value)
    assert "\n" not in str(error.value)


def test_another_architecture_is_refused_by_name(tmp_path):
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "gemma3")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(WeightLoadError, match="architecture 'gemma3' is not supported; supported are llama, qwen2"):
        open_checkpoint(tmp_path / "m.gguf")


def test_missing_tensors_are_named(tmp_path):
    write(tmp_path / "m.gguf", drop=["layers.1.up_proj"])
    with pytest.raises(WeightLoadError, match=r"lacks the tensor blk\.1\.ffn_up\.weight"):
        open_checkpoint(tmp_path / "m.gguf")


def test_superfluous_tensors_are_named(tmp_path):
    write(tmp_path / "m.gguf", extra={"blk.0.ffn_gate_inp.weight": np.ones((8, 256), np.float32)})
    with pytest.raises(WeightLoadError, match=r"holds the tensor blk\.0\.ffn_gate_inp\.weight.* no use"):
        open_checkpoint(tmp_path / "m.gguf")


def test_opening_imports_no_torch(tmp_path):
    write(tmp_path / "m.gguf")
    code = f"""
import sys
from pathlib import Path
from deepinfer.loader import open_checkpoint
open_checkpoint(Path({str(tmp_path / "m.gguf")!r}))
assert "torch" not in sys.modules and "transformers" not in sys.modules and "gguf" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
