"""Write a GGUF file of half a billion random weights, to time formats and families that no small download offers.

python benchmarks/make_random_gguf.py q4_k_m out.gguf        (or q8_0, q4_0, q4_1, f16)

The shape is Qwen3's of 0.6 B with a smaller vocabulary. Every engine reads such a file and computes as much as
with trained weights; what it says is noise.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.progress import track

from deepinfer.config import ModelConfig
from deepinfer.loader.checkpoint import RawTensor
from deepinfer.testing.model_files import write_gguf
from deepinfer.testing.tiny_models import make_random_tensors

CONFIG = ModelConfig(
    architecture="qwen3",
    vocab_size=49152,
    hidden_size=1024,
    intermediate_size=3072,
    num_layers=28,
    num_qo_heads=16,
    num_kv_heads=8,
    head_dim=128,
    max_position_embeddings=8192,
    rms_norm_eps=1e-6,
    rope_theta=1e6,
    tie_word_embeddings=True,
    qk_norm=True,
    eos_token_ids=(257,),
    bos_token_id=256,
)
FORMATS = ("q4_k_m", "q8_0", "q4_0", "q4_1", "f16")


def storage_of(name: str, layer: int, wanted: str) -> str:
    """The storage of one matrix; q4_k_m keeps more bits where llama.cpp's recipe of that name does.

    That is: the (tied) head, and v and down in the first and last eighth of the layers and every third between.
    """
    if wanted != "q4_k_m":
        return wanted
    if name == "embed_tokens":
        return "q6_k"
    eighth = CONFIG.num_layers // 8
    more = layer < eighth or layer >= 7 * CONFIG.num_layers // 8 or (layer - eighth) % 3 == 2
    return "q6_k" if more and name.endswith(("v_proj", "down_proj")) else "q4_k"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # Names and shapes come from a model of one layer: all layers are alike, and one at a time fits any memory.
    one_layer = replace(CONFIG, num_layers=1)
    tensors: dict[str, RawTensor] = {}
    for layer in track(range(CONFIG.num_layers), "drawing weights", transient=True):
        by_storage = {}
        for name in make_random_tensors(one_layer, "q8_0", seed=0):
            is_in_layer = name.startswith("layers.0.")
            if layer and not is_in_layer:
                continue
            storage = storage_of(name, layer, options.format)
            if storage not in by_storage:
                by_storage[storage] = make_random_tensors(one_layer, storage, seed=options.seed + layer)
            own_name = name.replace("layers.0.", f"layers.{layer}.", 1) if is_in_layer else name
            tensors[own_name] = replace(by_storage[storage][name], name=own_name)
    # llama.cpp reads no vocabulary without merges.
    write_gguf(options.path, CONFIG, tensors, merges=("t h", "th e"))
    num_weights = sum(int(np.prod(tensor.shape)) for tensor in tensors.values())
    print(f"{options.path}: {num_weights:,} weights, {options.path.stat().st_size / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
