"""From a Hugging Face `config.json` to a ModelConfig. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deepinfer.config import ModelConfig, RopeScaling
from deepinfer.errors import ConfigError, WeightLoadError

MODEL_TYPES: Final = ("llama", "mistral", "qwen2", "qwen3")
DEFAULT_ROPE_THETA: Final = 10000.0
MAX_LAYERS: Final = 1000  # a damaged number must not become a loop without end
DEFAULT_MISTRAL_WINDOW: Final = 4096


class _Fields:
    """Typed access to a JSON object with errors that name the field."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def integer(self, name: str, default: int | None = None) -> int:
        value = self.values.get(name)
        value = default if value is None else value
        if type(value) is not int:
            raise WeightLoadError(f"{self.where}: {name} must be an integer, but is {value!r}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WeightLoadError(f"{self.where}: {name} must be a number, but is {value!r}")
        return float(value)

    def refuse(self, name: str, *, unless: Sequence[object]) -> None:
        value = self.values.get(name)
        if value not in unless:
            raise WeightLoadError(f"{self.where}: {name} = {value!r} is not supported")


def model_config_of(values: Mapping[str, Any], *, eos_token_ids: tuple[int, ...], where: str) -> ModelConfig:
    """Read the fields of `config.json`; what they leave open follows the family's defaults.

    Args:
        values: the parsed file.
        eos_token_ids: ids that end an output, from all files of the directory.
        where: the file, for messages.

    Raises:
        WeightLoadError: the family or an option of it is not covered, or a field is missing or invalid.
    """
    fields = _Fields(values, where)
    model_type = values.get("model_type")
    if model_type not in MODEL_TYPES:
        raise WeightLoadError(
            f"{where}: the model type {model_type!r} is not supported; supported are {', '.join(MODEL_TYPES)}"
        )
    fields.refuse("hidden_act", unless=("silu", None))
    fields.refuse("mlp_bias", unless=(False, None))
    fields.refuse("quantization_config", unless=(None,))
    # Where these families allow the option, it puts a bias on the output projection as well.
    fields.refuse("attention_bias", unless=(False, None))
    num_qo_heads = fields.integer("num_attention_heads")
    hidden_size = fields.integer("hidden_size")
    num_layers = fields.integer("num_hidden_layers")
    if num_qo_heads < 1:
        raise WeightLoadError(f"{where}: num_attention_heads must be positive, but is {num_qo_heads}")
    if num_layers > MAX_LAYERS:
        raise WeightLoadError(f"{where}: num_hidden_layers is {num_layers}; at most {MAX_LAYERS} are supported")
    default_head_dim = 128 if model_type == "qwen3" else hidden_size // num_qo_heads
    try:
        return ModelConfig(
            architecture=str(model_type),
            vocab_size=fields.integer("vocab_size"),
            hidden_size=hidden_size,
            intermediate_size=fields.integer("intermediate_size"),
            num_layers=num_layers,
            num_qo_heads=num_qo_heads,
            num_kv_heads=fields.integer("num_key_value_heads", num_qo_heads),
            head_dim=fields.integer("head_dim", default_head_dim),
            max_position_embeddings=fields.integer("max_position_embeddings"),
            rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
            rope_theta=_rope_fields(fields).number("rope_theta", DEFAULT_ROPE_THETA),
            rope_scaling=_rope_scaling(_rope_fields(fields), fields),
            tie_word_embeddings=values.get("tie_word_embeddings") is True,
            attention_bias=model_type == "qwen2",
            qk_norm=model_type == "qwen3",
            sliding_window=_sliding_window(fields, str(model_type), num_layers),
            eos_token_ids=eos_token_ids,
            bos_token_id=values.get("bos_token_id") if type(values.get("bos_token_id")) is int else None,
        )
    except ConfigError as error:
        raise WeightLoadError(f"{where}: {error}") from error


def _rope_fields(fields: _Fields) -> _Fields:
    """Rope options: `rope_parameters` of newer files, `rope_theta` and `rope_scaling` of older ones."""
    merged = {"rope_theta": fields.values.get("rope_theta")}
    for name in ("rope_scaling", "rope_parameters"):
        options = fields.values.get(name)
        if options is None:
            continue
        if not isinstance(options, dict):
            raise WeightLoadError(f"{fields.where}: {name} must be an object, but is {options!r}")
        merged |= {key: value for key, value in options.items() if value is not None}
    return _Fields(merged, f"{fields.where}: rope")


def _rope_scaling(rope: _Fields, fields: _Fields) -> RopeScaling | None:
    for options in (rope, fields):
        options.refuse("partial_rotary_factor", unless=(None, 1, 1.0))
    kind = rope.values.get("rope_type", rope.values.get("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling(kind="linear", factor=rope.number("factor"))
    if kind == "llama3":
        return RopeScaling(
            kind="llama3",
            factor=rope.number("factor"),
            low_freq_factor=rope.number("low_freq_factor"),
            high_freq_factor=rope.number("high_freq_factor"),
            original_max_position_embeddings=rope.integer("original_max_position_embeddings"),
        )
    raise WeightLoadError(f"{rope.where} type {kind!r} is not supported; supported are default, linear and llama3")


def _sliding_window(fields: _Fields, model_type: str, num_layers: int) -> int | None:
    if model_type == "llama" or (model_type != "mistral" and fields.values.get("use_sliding_window") is not True):
        return None
    # The family's default is a window; a file without one says null.
    window = fields.values.get("sliding_window", DEFAULT_MISTRAL_WINDOW if model_type == "mistral" else None)
    if window is None:
        return None
    if type(window) is not int or window < 1:
        raise WeightLoadError(f"{fields.where}: sliding_window must be a positive integer, but is {window!r}")
    kinds = fields.values.get("layer_types")
    if kinds is None:
        first_sliding = 0 if model_type == "mistral" else fields.integer("max_window_layers", 28)
        kinds = ["sliding_attention" if index >= first_sliding else "full_attention" for index in range(num_layers)]
    if not isinstance(kinds, list) or not {*map(str, kinds)} <= {"sliding_attention", "full_attention"}:
        raise WeightLoadError(f"{fields.where}: layer_types = {kinds!r} is not supported")
    if len(set(kinds)) > 1:
        raise WeightLoadError(f"{fields.where}: models that mix sliding and full attention are not supported")
    return window if kinds and kinds[0] == "sliding_attention" else None
