"""A Hugging Face directory as a checkpoint: families, shards, tokenizer files, refusals by name."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from deepinfer.config import RopeScaling
from deepinfer.errors import WeightLoadError
from deepinfer.loader import open_checkpoint
from deepinfer.loader.checkpoint import RawTensor
from deepinfer.quant.gguf_blocks import dequantize
from deepinfer.testing import FAMILIES, make_random_tensors, make_tiny_config, write_huggingface


def write(path, family="llama", *, storage="f32", num_shards=1, drop=(), add=None, options=None, **changes):
    config = make_tiny_config(family, **changes)
    tensors = make_random_tensors(config, storage)
    for name in drop:
        del tensors[name]
    tensors.update(add or {})
    write_huggingface(path, config, tensors, num_shards=num_shards, **(options or {}))
    return config, tensors


def refusal(path):
    with pytest.raises(WeightLoadError) as error:
        open_checkpoint(path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("num_shards", [1, 3])
def test_every_family_opens(tmp_path, family, num_shards):
    options = {"layer_types": None}
    config, tensors = write(tmp_path / "Model", family, num_shards=num_shards, options=options)
    checkpoint = open_checkpoint(tmp_path / "Model")
    assert checkpoint.config == config
    assert checkpoint.default_model_name == "model"
    assert checkpoint.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        opened = checkpoint.tensors[name]
        assert opened.num_interleaved_heads == 0
        np.testing.assert_array_equal(
            dequantize(opened.data, opened.storage, opened.shape), tensor.data.view(np.float32).reshape(tensor.shape)
        )
    checkpoint.release_pages()


def test_half_precision_stays_as_it_is(tmp_path):
    write(tmp_path, storage="f16")
    assert open_checkpoint(tmp_path).tensors["layers.0.q_proj"].storage == "f16"


def test_tokenizer_files(tmp_path):
    write(tmp_path)
    tokenizer = open_checkpoint(tmp_path).tokenizer
    assert tokenizer.tokenizer_json == tmp_path / "tokenizer.json"
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.add_bos_token) == ("<|start|>", "<|end|>", False)
    (tmp_path / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(tmp_path)


def test_chat_template_of_its_own_file_wins(tmp_path):
    write(tmp_path)
    assert open_checkpoint(tmp_path).chat_template.startswith("{% for message in messages %}")
    (tmp_path / "chat_template.jinja").write_text("own file")
    assert open_checkpoint(tmp_path).chat_template == "own file"


def test_named_chat_templates(tmp_path):
    write(tmp_path)
    templates = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    assert open_checkpoint(tmp_path).chat_template == "d"
    (tmp_path / "tokenizer_config.json").unlink()
    assert open_checkpoint(tmp_path).chat_template is None


def test_end_ids_of_both_files_count(tmp_path):
    write(tmp_path, options={"eos_token_id": 5})
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 5, 6]}))
    assert open_checkpoint(tmp_path).config.eos_token_ids == (5, 6, 7)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}


@pytest.mark.parametrize(
    ("options", "scaling", "theta"),
    [
        ({"rope_scaling": {"rope_type": "llama3", **LLAMA3}}, RopeScaling(kind="llama3", **LLAMA3), 10000.0),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, RopeScaling(kind="linear", factor=2.0), 10000.0),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, None, 5e5),
        ({"rope_theta": None}, None, 10000.0),
    ],
)
def test_rope_options_of_old_and_new_files(tmp_path, options, scaling, theta):
    write(tmp_path, options=options)
    config = open_checkpoint(tmp_path).config
    assert config.rope_scaling == scaling
    assert config.rope_theta == theta


@pytest.mark.parametrize(
    ("family", "options", "window"),
    [
        ("mistral", {"sliding_window": None}, None),
        ("mistral", {"sliding_window": 32}, 32),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": False}, None),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 0}, 32),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 2}, None),
        ("llama", {"sliding_window": 32}, None),
    ],
)
def test_sliding_windows(tmp_path, family, options, window):
    write(tmp_path, family, options=options)
    assert open_checkpoint(tmp_path).config.sliding_window == window


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "gemma3"}, "model type 'gemma3' is not supported; supported are llama, mistral, qwen2, qwen3"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu' is not supported"),
        ({"attention_bias": True}, "attention_bias = True is not supported"),
        ({"mlp_bias": True}, "mlp_bias = True is not supported"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config = {'quant_method': 'gptq'} is not"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, "type 'yarn' is not supported"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5 is not supported"),
        ({"hidden_size": "256"}, "hidden_size must be an integer, but is '256'"),
        ({"num_hidden_layers": None}, "num_hidden_layers must be an integer, but is None"),
        ({"num_hidden_layers": 3}, "lacks the tensors model.layers.2.input_layernorm.weight"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers is 1000000000000; at most 1000 are supported"),
        ({"num_hidden_layers": 1}, "holds the tensors model.layers.1."),
        ({"intermediate_size": 256}, r"mlp.gate_proj.weight has shape (512, 256), but"),
        ({"num_key_value_heads": 3}, "must be a multiple of num_kv_heads"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(tmp_path, options, message):
    write(tmp_path, options=options)
    assert message in refusal(tmp_path)


def test_layers_that_differ_in_attention_are_refused(tmp_path):
    options = {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 1}
    write(tmp_path, "qwen3", options=options)
    assert "mix sliding and full attention" in refusal(tmp_path)


def test_missing_and_superfluous_tensors_are_named(tmp_path):
    write(tmp_path / "a", drop=["final_norm"])
    assert "lacks the tensor model.norm.weight" in refusal(tmp_path / "a")
    tensor = RawTensor(name="x", shape=(2,), storage="f32", data=np.zeros(8, np.uint8))
    write(tmp_path / "b", add={"model.layers.0.self_attn.o_proj.bias": tensor})
    assert "holds the tensor model.layers.0.self_attn.o_proj.bias" in refusal(tmp_path / "b")


def test_buffers_and_the_head_of_a_tied_model_are_ignored(tmp_path):
    config = make_tiny_config("qwen2")
    head = RawTensor(name="lm_head", shape=(272, 256), storage="f32", data=np.zeros(272 * 256 * 4, np.uint8))
    buffer = RawTensor(name="b", shape=(16,), storage="f32", data=np.zeros(64, np.uint8))
    write(tmp_path, "qwen2", add={"lm_head": head, "model.layers.0.self_attn.rotary_emb.inv_freq": buffer})
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.config.tie_word_embeddings is config.tie_word_embeddings is True
    assert "lm_head" not in checkpoint.tensors


def test_missing_files(tmp_path):
    assert "is a directory without config.json" in refusal(tmp_path)
    write(tmp_path / "a")
    (tmp_path / "a" / "model.safetensors").unlink()
    assert "holds neither model.safetensors nor" in refusal(tmp_path / "a")
    write(tmp_path / "b", num_shards=2)
    (tmp_path / "b" / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors" in refusal(tmp_path / "b")
    (tmp_path / "b" / "config.json").write_text("{broken")
    assert "cannot read" in refusal(tmp_path / "b")
    (tmp_path / "b" / "config.json").write_text("[1]")
    assert "must hold a JSON object" in refusal(tmp_path / "b")


def test_a_shard_outside_the_directory_is_refused(tmp_path):
    write(tmp_path, num_shards=2)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "../secret.safetensors"}}))
    assert "outside its directory" in refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": [1]}))
    assert "weight_map must map tensor names to file names" in refusal(tmp_path)


def header_of(entries):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot open"),
        (b"abc", "is truncated or no safetensors file"),
        (b"\xff" * 100, "is truncated or no safetensors file"),
        (struct.pack("<Q", 4) + b"nope", "its header is not JSON"),
        (header_of([1]), "its header is not a JSON object"),
        (header_of({"x": 1}), "entry of tensor x is not an object"),
        (header_of({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}), "shape or position of tensor x"),
        (header_of({"x": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}), "number type F8_E4M3, which is"),
        (header_of({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}), "of shape (2,) has 4 bytes"),
        (header_of({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}), "is truncated: tensor x ends at"),
    ],
)
def test_damaged_safetensors_files(tmp_path, content, message):
    write(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    assert message in refusal(tmp_path)
