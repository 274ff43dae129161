"""Names and shapes of the tensors that a model needs, and the names they have in each file format.

Canonical names are those of `Checkpoint.tensors`. No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deepinfer.config import ModelConfig
from deepinfer.errors import WeightLoadError
from deepinfer.loader.checkpoint import RawTensor

GGUF_MODEL_NAMES: Final = {
    "embed_tokens": "token_embd.weight",
    "final_norm": "output_norm.weight",
    "lm_head": "output.weight",
}
GGUF_LAYER_PREFIX: Final = "blk.{}."
GGUF_LAYER_NAMES: Final = {
    "attn_norm": "attn_norm.weight",
    "q_proj": "attn_q.weight",
    "k_proj": "attn_k.weight",
    "v_proj": "attn_v.weight",
    "o_proj": "attn_output.weight",
    "q_bias": "attn_q.bias",
    "k_bias": "attn_k.bias",
    "v_bias": "attn_v.bias",
    "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight",
    "mlp_norm": "ffn_norm.weight",
    "gate_proj": "ffn_gate.weight",
    "up_proj": "ffn_up.weight",
    "down_proj": "ffn_down.weight",
}

HF_MODEL_NAMES: Final = {
    "embed_tokens": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "lm_head": "lm_head.weight",
}
HF_LAYER_PREFIX: Final = "model.layers.{}."
HF_LAYER_NAMES: Final = {
    "attn_norm": "input_layernorm.weight",
    "q_proj": "self_attn.q_proj.weight",
    "k_proj": "self_attn.k_proj.weight",
    "v_proj": "self_attn.v_proj.weight",
    "o_proj": "self_attn.o_proj.weight",
    "q_bias": "self_attn.q_proj.bias",
    "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "gate_proj": "mlp.gate_proj.weight",
    "up_proj": "mlp.up_proj.weight",
    "down_proj": "mlp.down_proj.weight",
}


def canonical_names(
    num_layers: int, model_names: Mapping[str, str], layer_prefix: str, layer_names: Mapping[str, str]
) -> dict[str, str]:
    """Name in the file -> canonical name, for every tensor that a model of this depth may have."""
    names = {file_name: name for name, file_name in model_names.items()}
    for layer in range(num_layers):
        prefix = layer_prefix.format(layer)
        names |= {prefix + file_name: f"layers.{layer}.{name}" for name, file_name in layer_names.items()}
    return names


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Canonical name -> shape of every tensor that the model needs, in the order of use."""
    hidden, head_dim = config.hidden_size, config.head_dim
    qo_size, kv_size = config.num_qo_heads * head_dim, config.num_kv_heads * head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (hidden,),
        "q_proj": (qo_size, hidden),
        "k_proj": (kv_size, hidden),
        "v_proj": (kv_size, hidden),
    }
    if config.attention_bias:
        layer |= {"q_bias": (qo_size,), "k_bias": (kv_size,), "v_bias": (kv_size,)}
    if config.qk_norm:
        layer |= {"q_norm": (head_dim,), "k_norm": (head_dim,)}
    layer |= {
        "o_proj": (hidden, qo_size),
        "mlp_norm": (hidden,),
        "gate_proj": (config.intermediate_size, hidden),
        "up_proj": (config.intermediate_size, hidden),
        "down_proj": (hidden, config.intermediate_size),
    }
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (config.vocab_size, hidden)}
    for index in range(config.num_layers):
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    shapes["final_norm"] = (hidden,)
    if not config.tie_word_embeddings:
        shapes["lm_head"] = (config.vocab_size, hidden)
    return shapes


def check_coverage(
    config: ModelConfig, tensors: Mapping[str, RawTensor], file_names: Mapping[str, str], where: str
) -> None:
    """Compare the tensors of a file with what the model needs.

    Args:
        tensors: canonical name -> tensor.
        file_names: canonical name -> name in the file, for the message.
        where: the file, for the message.

    Raises:
        WeightLoadError: a tensor is missing, superfluous or wrongly shaped; the message names it.
    """
    expected = expected_shapes(config)
    missing = [file_names.get(name, name) for name in expected if name not in tensors]
    if missing:
        raise WeightLoadError(f"{where} lacks {_listed(missing)}, which a {config.architecture} model needs")
    superfluous = [file_names.get(name, name) for name in tensors if name not in expected]
    if superfluous:
        raise WeightLoadError(
            f"{where} holds {_listed(superfluous)}, for which this {config.architecture} model has no use; "
            "the file is of another architecture or its configuration is wrong"
        )
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise WeightLoadError(
                f"{where}: tensor {file_names.get(name, name)} has shape {tensors[name].shape}, "
                f"but the model's configuration asks for {shape}"
            )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    noun = "the tensor" if len(names) == 1 else "the tensors"
    return f"{noun} {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
