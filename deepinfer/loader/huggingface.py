"""A Hugging Face model directory as a Checkpoint: config.json, safetensors, tokenizer.json. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deepinfer.errors import WeightLoadError
from deepinfer.loader.checkpoint import RawTensor, TokenizerSpec
from deepinfer.loader.hf_config import model_config_of
from deepinfer.loader.safetensors_file import SafetensorsFiles, read_json_object
from deepinfer.loader.weight_map import (
    HF_LAYER_NAMES,
    HF_LAYER_PREFIX,
    HF_MODEL_NAMES,
    canonical_names,
    check_coverage,
)

CHAT_TEMPLATE_FILE_NAME: Final = "chat_template.jinja"
# Buffers that some exporters wrote beside the weights; every reader computes them.
_COMPUTED_SUFFIXES: Final = ("rotary_emb.inv_freq",)


class HuggingFaceCheckpoint:
    """An opened directory (see `Checkpoint`); tensors are views of memory maps."""

    def __init__(self, path: Path) -> None:
        """Open the directory and check it completely, apart from the numbers in the tensors.

        Raises:
            WeightLoadError: a file is missing or damaged, or holds something that is not covered.
        """
        self.path = path
        self.default_model_name = path.resolve().name.lower()
        config_path = path / "config.json"
        values = read_json_object(config_path)
        generation = _read_optional(path / "generation_config.json")
        self.config = model_config_of(values, eos_token_ids=_eos_token_ids(values, generation), where=str(config_path))
        tokenizer_config = _read_optional(path / "tokenizer_config.json")
        self.tokenizer = _tokenizer_spec(path, tokenizer_config)
        self.chat_template = _chat_template(path, tokenizer_config)
        self._files = SafetensorsFiles(path)
        self._tensors = self._collect_tensors()

    @property
    def tensors(self) -> Mapping[str, RawTensor]:
        """Tensors by canonical name."""
        return self._tensors

    def release_pages(self) -> None:
        """Give the resident pages of the files back to the system; a later access reads them again."""
        self._files.release_pages()

    def _collect_tensors(self) -> dict[str, RawTensor]:
        config = self.config
        names = canonical_names(config.num_layers, HF_MODEL_NAMES, HF_LAYER_PREFIX, HF_LAYER_NAMES)
        tensors: dict[str, RawTensor] = {}
        for file_name, tensor in self._files.tensors.items():
            name = names.get(file_name, file_name)
            is_unused_head = name == "lm_head" and config.tie_word_embeddings
            if is_unused_head or file_name.endswith(_COMPUTED_SUFFIXES):
                continue
            tensors[name] = RawTensor(name=name, shape=tensor.shape, storage=tensor.storage, data=tensor.data)
        check_coverage(config, tensors, {name: file_name for file_name, name in names.items()}, str(self.path))
        return tensors


def _read_optional(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.exists() else {}


def _eos_token_ids(config: Mapping[str, Any], generation: Mapping[str, Any]) -> tuple[int, ...]:
    ids: set[int] = set()
    for source in (config, generation):
        value = source.get("eos_token_id")
        ids.update(item for item in (value if isinstance(value, list) else [value]) if type(item) is int)
    return tuple(sorted(ids))


def _tokenizer_spec(path: Path, tokenizer_config: Mapping[str, Any]) -> TokenizerSpec:
    tokenizer_json = path / "tokenizer.json"
    if not tokenizer_json.exists():
        raise WeightLoadError(f"{path} has no tokenizer.json; save the tokenizer in that form (transformers does)")
    bos_token = _spelling(tokenizer_config.get("bos_token"))
    return TokenizerSpec(
        tokenizer_json=tokenizer_json,
        bos_token=bos_token,
        eos_token=_spelling(tokenizer_config.get("eos_token")),
        add_bos_token=tokenizer_config.get("add_bos_token") is True and bos_token != "",
    )


def _spelling(token: object) -> str:
    """Spelling of a special token: a string, or an object with its options."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _chat_template(path: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """The file of its own, else the entry of tokenizer_config.json; of several named ones, "default"."""
    template_path = path / CHAT_TEMPLATE_FILE_NAME
    if template_path.exists():
        try:
            return template_path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise WeightLoadError(f"cannot read {template_path}: {error}") from error
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None
