"""A GGUF file as a Checkpoint: architectures llama (with Mistral), qwen2 and qwen3. No torch here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from deepinfer.config import ModelConfig, RopeScaling
from deepinfer.errors import ConfigError, WeightLoadError
from deepinfer.loader.checkpoint import RawTensor, TokenizerSpec
from deepinfer.loader.gguf_file import GGUFFile
from deepinfer.loader.weight_map import (
    GGUF_LAYER_NAMES,
    GGUF_LAYER_PREFIX,
    GGUF_MODEL_NAMES,
    canonical_names,
    check_coverage,
)

ARCHITECTURES: Final = ("llama", "qwen2", "qwen3")
TOKENIZER_MODELS: Final = ("gpt2", "llama")
ROPE_FREQUENCY_FACTORS: Final = "rope_freqs.weight"

# Converters of arch llama reorder the rows of each q and k head, so that adjacent pairs rotate.
_INTERLEAVED_ARCHITECTURES: Final = ("llama",)
_CONTROL_TOKEN: Final = 3
_END_OF_TURN_SPELLINGS: Final = ("<|im_end|>", "<|eot_id|>")
_QUANTISATION_SUFFIX: Final = re.compile(r"[.-](?:I?Q\d\w*|B?F16|F32|MXFP4)$", re.IGNORECASE)


class GGUFCheckpoint:
    """An opened GGUF file (see `Checkpoint`); tensors are views of a memory map."""

    def __init__(self, path: Path) -> None:
        """Open the file and check it completely, apart from the numbers in the tensors.

        Raises:
            WeightLoadError: the file is damaged or holds something that is not covered.
        """
        self.path = path
        self._file = GGUFFile(path)
        metadata = _Metadata(self._file.metadata, path.name)
        self.config = _model_config(metadata, self._file)
        self.tokenizer = _tokenizer_spec(metadata, self.config)
        self.chat_template = metadata.optional("tokenizer.chat_template", str)
        self.default_model_name = _QUANTISATION_SUFFIX.sub("", path.name.removesuffix(".gguf")).lower()
        self._tensors = self._collect_tensors()

    @property
    def tensors(self) -> Mapping[str, RawTensor]:
        """Tensors by canonical name."""
        return self._tensors

    def release_pages(self) -> None:
        """Give the resident pages of the file back to the system; a later access reads them again."""
        self._file.release_pages()

    def _collect_tensors(self) -> dict[str, RawTensor]:
        config = self.config
        names = canonical_names(config.num_layers, GGUF_MODEL_NAMES, GGUF_LAYER_PREFIX, GGUF_LAYER_NAMES)
        interleaved = {"q_proj": config.num_qo_heads, "q_bias": config.num_qo_heads,
                       "k_proj": config.num_kv_heads, "k_bias": config.num_kv_heads}  # fmt: skip
        if self._file.metadata["general.architecture"] not in _INTERLEAVED_ARCHITECTURES:
            interleaved = {}
        tensors: dict[str, RawTensor] = {}
        for file_name, tensor in self._file.tensors.items():
            if file_name == ROPE_FREQUENCY_FACTORS:
                continue
            name = names.get(file_name, file_name)
            tensors[name] = RawTensor(
                name=name,
                shape=tensor.shape,
                storage=tensor.storage,
                data=self._file.tensor_data(tensor),
                num_interleaved_heads=interleaved.get(name.rpartition(".")[2], 0),
            )
        file_names = {name: file_name for file_name, name in names.items()}
        check_coverage(config, tensors, file_names, self.path.name)
        return tensors


class _Metadata:
    """Typed access to metadata with errors that name the key."""

    def __init__(self, values: Mapping[str, Any], file_name: str) -> None:
        self.values = values
        self.file_name = file_name

    def optional(self, key: str, kind: type[Any]) -> Any:
        value = self.values.get(key)
        is_number_for_float = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if value is None or is_number_for_float:
            return value
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise WeightLoadError(f"{self.file_name}: {key} must be of type {kind.__name__}, but is {value!r}")
        return value

    def required(self, key: str, kind: type[Any]) -> Any:
        value = self.optional(key, kind)
        if value is None:
            raise WeightLoadError(f"{self.file_name} lacks the metadata key {key}")
        return value


def _model_config(metadata: _Metadata, file: GGUFFile) -> ModelConfig:
    architecture: str = metadata.required("general.architecture", str)
    if architecture not in ARCHITECTURES:
        raise WeightLoadError(
            f"{metadata.file_name}: the architecture {architecture!r} is not supported; "
            f"supported are {', '.join(ARCHITECTURES)} (which includes Mistral and SmolLM2)"
        )
    prefix = architecture + "."
    if metadata.optional(prefix + "expert_count", int):
        raise WeightLoadError(f"{metadata.file_name}: {architecture} models with experts are not supported")
    hidden_size: int = metadata.required(prefix + "embedding_length", int)
    num_layers: int = metadata.required(prefix + "block_count", int)
    if num_layers > len(file.tensors):
        raise WeightLoadError(
            f"{metadata.file_name}: {prefix}block_count is {num_layers}, but there are only {len(file.tensors)} tensors"
        )
    num_qo_heads: int = metadata.required(prefix + "attention.head_count", int)
    head_dim = metadata.optional(prefix + "attention.key_length", int) or hidden_size // max(num_qo_heads, 1)
    for key in ("attention.value_length", "rope.dimension_count"):
        size = metadata.optional(prefix + key, int)
        if size is not None and size != head_dim:
            raise WeightLoadError(
                f"{metadata.file_name}: {prefix + key} is {size}, but only models where it equals the head size "
                f"({head_dim}) are supported"
            )
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise WeightLoadError(f"{metadata.file_name} lacks the tensor token_embd.weight")
    try:
        return ModelConfig(
            architecture=architecture,
            vocab_size=embedding.shape[0],
            hidden_size=hidden_size,
            intermediate_size=metadata.required(prefix + "feed_forward_length", int),
            num_layers=num_layers,
            num_qo_heads=num_qo_heads,
            num_kv_heads=metadata.optional(prefix + "attention.head_count_kv", int) or num_qo_heads,
            head_dim=head_dim,
            max_position_embeddings=metadata.required(prefix + "context_length", int),
            rms_norm_eps=metadata.required(prefix + "attention.layer_norm_rms_epsilon", float),
            rope_theta=metadata.optional(prefix + "rope.freq_base", float) or 10000.0,
            rope_scaling=_rope_scaling(metadata, prefix, file, head_dim),
            tie_word_embeddings="output.weight" not in file.tensors,
            attention_bias="blk.0.attn_q.bias" in file.tensors,
            qk_norm=architecture == "qwen3",
            sliding_window=metadata.optional(prefix + "attention.sliding_window", int) or None,
            eos_token_ids=_eos_token_ids(metadata),
            bos_token_id=metadata.optional("tokenizer.ggml.bos_token_id", int),
        )
    except ConfigError as error:
        raise WeightLoadError(f"{metadata.file_name}: {error}") from error


def _rope_scaling(metadata: _Metadata, prefix: str, file: GGUFFile, head_dim: int) -> RopeScaling | None:
    kind = metadata.optional(prefix + "rope.scaling.type", str) or "none"
    factor = metadata.optional(prefix + "rope.scaling.factor", float)
    factor = factor or metadata.optional(prefix + "rope.scale_linear", float) or 1.0
    if kind not in ("none", "linear"):
        raise WeightLoadError(f"{metadata.file_name}: the rope scaling {kind!r} is not supported; supported is linear")
    factors: tuple[float, ...] = ()
    tensor = file.tensors.get(ROPE_FREQUENCY_FACTORS)
    if tensor is not None:
        if tensor.storage != "f32" or tensor.shape != (head_dim // 2,):
            raise WeightLoadError(
                f"{metadata.file_name}: {ROPE_FREQUENCY_FACTORS} must be {head_dim // 2} numbers of type F32, but is "
                f"{tensor.shape} of type {tensor.storage.upper()}"
            )
        factors = tuple(file.tensor_data(tensor).view(np.float32).tolist())
        if not all(0.0 < value < float("inf") for value in factors):
            raise WeightLoadError(f"{metadata.file_name}: {ROPE_FREQUENCY_FACTORS} holds a number that is not positive")
    if factor == 1.0 and not factors:
        return None
    return RopeScaling(kind="linear", factor=factor, frequency_factors=factors)


def _eos_token_ids(metadata: _Metadata) -> tuple[int, ...]:
    ids = [metadata.optional(f"tokenizer.ggml.{name}_token_id", int) for name in ("eos", "eot", "eom")]
    types = metadata.values.get("tokenizer.ggml.token_type") or []
    tokens = metadata.values.get("tokenizer.ggml.tokens") or []
    for token_id, token_type in enumerate(types):
        if token_type == _CONTROL_TOKEN and token_id < len(tokens) and tokens[token_id] in _END_OF_TURN_SPELLINGS:
            ids.append(token_id)
    return tuple(sorted({token_id for token_id in ids if token_id is not None}))


def _tokenizer_spec(metadata: _Metadata, config: ModelConfig) -> TokenizerSpec:
    model: str = metadata.required("tokenizer.ggml.model", str)
    if model not in TOKENIZER_MODELS:
        raise WeightLoadError(
            f"{metadata.file_name}: the tokenizer model {model!r} is not supported; "
            f"supported are {', '.join(TOKENIZER_MODELS)}"
        )
    tokens: list[str] = metadata.required("tokenizer.ggml.tokens", list)
    if not tokens or not isinstance(tokens[0], str):
        raise WeightLoadError(f"{metadata.file_name}: tokenizer.ggml.tokens must be a list of strings")
    if len(tokens) > config.vocab_size:
        raise WeightLoadError(
            f"{metadata.file_name}: the vocabulary has {len(tokens)} tokens, but the embedding only "
            f"{config.vocab_size} rows"
        )
    eos_token_id = metadata.optional("tokenizer.ggml.eos_token_id", int)
    for token_id in (*config.eos_token_ids, *((config.bos_token_id,) if config.bos_token_id is not None else ())):
        if token_id >= len(tokens):
            raise WeightLoadError(
                f"{metadata.file_name}: special token id {token_id} lies outside the vocabulary of {len(tokens)} tokens"
            )
    # SentencePiece-type models begin with their bos token unless the file says otherwise.
    add_bos = metadata.optional("tokenizer.ggml.add_bos_token", bool)
    return TokenizerSpec(
        gguf_vocabulary={
            "model": model,
            "pre": metadata.optional("tokenizer.ggml.pre", str) or "default",
            "tokens": tokens,
            "merges": metadata.optional("tokenizer.ggml.merges", list) or [],
            "scores": metadata.optional("tokenizer.ggml.scores", list) or [],
            "token_types": metadata.optional("tokenizer.ggml.token_type", list) or [],
            "add_bos": (model == "llama") if add_bos is None else add_bos,
            "add_space_prefix": metadata.optional("tokenizer.ggml.add_space_prefix", bool) is not False
            and model == "llama",
        },
        bos_token="" if config.bos_token_id is None else tokens[config.bos_token_id],
        eos_token="" if eos_token_id is None else tokens[eos_token_id],
        add_bos_token=(model == "llama") if add_bos is None else add_bos,
    )
