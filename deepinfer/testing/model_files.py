"""Write a small model as a GGUF file or a Hugging Face directory, with a byte vocabulary. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepinfer.config import ModelConfig
from deepinfer.loader.checkpoint import RawTensor
from deepinfer.loader.safetensors_file import INDEX_FILE_NAME, SINGLE_FILE_NAME
from deepinfer.loader.weight_map import (
    GGUF_LAYER_NAMES,
    GGUF_LAYER_PREFIX,
    GGUF_MODEL_NAMES,
    HF_LAYER_NAMES,
    HF_LAYER_PREFIX,
    HF_MODEL_NAMES,
    canonical_names,
)

SPECIAL_TOKENS: Final = ("<|start|>", "<|end|>")
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
_ARRAY_STORAGES: Final = {"f32": np.float32, "f16": np.float16}


def byte_vocabulary(vocab_size: int) -> list[str]:
    """256 bytes as GPT-2 spells them, two special tokens, and fillers up to the size of the vocabulary."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    spelling = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    fillers = [f"<|unused{n}|>" for n in range(vocab_size - 256 - len(SPECIAL_TOKENS))]
    return [spelling[byte] for byte in range(256)] + [*SPECIAL_TOKENS, *fillers]


def write_gguf(
    path: Path,
    config: ModelConfig,
    tensors: Mapping[str, RawTensor],
    *,
    merges: Sequence[str] = (),
    extra_metadata: Mapping[str, int | float | str | bool] | None = None,
    extra_tensors: Mapping[str, NDArray[np.float32]] | None = None,
) -> None:
    """Write a GGUF file through the `gguf` package.

    Args:
        tensors: canonical name -> tensor in half-split order; rows of q and k are stored as the architecture demands.
        merges: pairs of the vocabulary, as "a b"; each gets a token in the place of a filler.
        extra_metadata: further keys; a key that is written anyway takes this value.
        extra_tensors: further tensors by their name in the file.
    """
    import gguf

    architecture = {"mistral": "llama"}.get(config.architecture, config.architecture)
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {**_gguf_metadata(config, architecture), **(extra_metadata or {})}.items():
        if key != "general.architecture" and value is not None:
            _add_metadata(writer, key, value)
    tokens = byte_vocabulary(config.vocab_size)
    first_merged = 256 + len(SPECIAL_TOKENS)
    tokens[first_merged : first_merged + len(merges)] = [merge.replace(" ", "") for merge in merges]
    types = [1] * 256 + [3] * (len(tokens) - 256)
    types[first_merged : first_merged + len(merges)] = [1] * len(merges)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(merges))
    names = canonical_names(config.num_layers, GGUF_MODEL_NAMES, GGUF_LAYER_PREFIX, GGUF_LAYER_NAMES)
    file_names = {name: file_name for file_name, name in names.items()}
    heads = {"q_proj": config.num_qo_heads, "k_proj": config.num_kv_heads}
    for name, tensor in tensors.items():
        rows = tensor.data.reshape(tensor.shape[0], -1)
        num_heads = heads.get(name.rpartition(".")[2], 0) if architecture == "llama" else 0
        if num_heads:
            rows = rows.reshape(num_heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
        if tensor.storage in _ARRAY_STORAGES:
            values = np.ascontiguousarray(rows).view(_ARRAY_STORAGES[tensor.storage]).reshape(tensor.shape)
            writer.add_tensor(file_names[name], values)
        else:
            block_type = gguf.GGMLQuantizationType[tensor.storage.upper()]
            writer.add_tensor(file_names[name], np.ascontiguousarray(rows), raw_dtype=block_type)
    for name, values in (extra_tensors or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_metadata(config: ModelConfig, architecture: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "block_count": config.num_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_qo_heads,
        "attention.head_count_kv": config.num_kv_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.sliding_window": config.sliding_window,
        "rope.freq_base": config.rope_theta,
        "rope.dimension_count": config.head_dim,
    }
    metadata = {f"{architecture}.{key}": value for key, value in values.items()}
    metadata |= {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.bos_token_id": config.bos_token_id,
        "tokenizer.ggml.eos_token_id": config.eos_token_ids[0],
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }
    return metadata


def _add_metadata(writer: Any, key: str, value: float | str | bool) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, value)


def write_huggingface(
    directory: Path, config: ModelConfig, tensors: Mapping[str, RawTensor], *, num_shards: int = 1, **options: Any
) -> None:
    """Write a directory with config.json, safetensors and tokenizer.json.

    Args:
        tensors: canonical name -> tensor, stored as f32 or f16.
        num_shards: files the tensors are spread over; an index is written for more than one.
        options: further fields of config.json, or other values for its fields.
    """
    from safetensors.numpy import save_file

    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps({**_hf_config(config), **options}))
    (directory / "tokenizer.json").write_text(json.dumps(_tokenizer_json(config.vocab_size)))
    tokenizer_config = {"bos_token": SPECIAL_TOKENS[0], "eos_token": {"content": SPECIAL_TOKENS[1]}}
    (directory / "tokenizer_config.json").write_text(json.dumps({**tokenizer_config, "chat_template": CHAT_TEMPLATE}))
    names = canonical_names(config.num_layers, HF_MODEL_NAMES, HF_LAYER_PREFIX, HF_LAYER_NAMES)
    file_names = {name: file_name for file_name, name in names.items()}
    arrays = {
        file_names.get(name, name): tensor.data.view(_ARRAY_STORAGES[tensor.storage]).reshape(tensor.shape)
        for name, tensor in tensors.items()
    }
    if num_shards == 1:
        save_file(arrays, directory / SINGLE_FILE_NAME)
        return
    weight_map: dict[str, str] = {}
    for shard in range(num_shards):
        shard_name = f"model-{shard + 1:05d}-of-{num_shards:05d}.safetensors"
        members = {name: arrays[name] for name in sorted(arrays)[shard::num_shards]}
        save_file(members, directory / shard_name)
        weight_map |= dict.fromkeys(members, shard_name)
    (directory / INDEX_FILE_NAME).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def _hf_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "model_type": config.architecture,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_qo_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_word_embeddings,
        "hidden_act": "silu",
        "sliding_window": config.sliding_window,
        "eos_token_id": list(config.eos_token_ids),
        "bos_token_id": config.bos_token_id,
    }


def _tokenizer_json(vocab_size: int) -> dict[str, Any]:
    tokens = byte_vocabulary(vocab_size)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for token_id, token in enumerate(tokens) if token_id >= 256
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": [],
        },
    }  # fmt: skip
