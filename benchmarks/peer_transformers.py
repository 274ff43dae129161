"""Times transformers on one model directory, in process: python benchmarks/peer_transformers.py DIR --dtype bfloat16

Prints one JSON object: decode and prefill of one stream, output tokens/s of a static batch, seconds
until ready, memory. It runs in whatever environment it is started with, so that a peer's packages
stay out of the product's.
"""

import argparse
import json
import resource
import statistics
import time

START = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="Hugging Face directory")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8, help="rows of the static batch; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3)
    a = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from workload import make_prompts

    torch.set_num_threads(a.threads)
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=getattr(torch, a.dtype)).eval()

    def generate(prompts: list[str], num_tokens: int) -> float:
        inputs = tokenizer(prompts, return_tensors="pt", padding=len(prompts) > 1)
        begin = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False)
        seconds = time.perf_counter() - begin
        if out.shape[1] != inputs["input_ids"].shape[1] + num_tokens:
            raise SystemExit("the peer stopped early: figures would not be comparable")
        return seconds

    generate(["Hello"], 2)
    ready_seconds = time.perf_counter() - START
    short = make_prompts(a.repeats, 16, seed=11)
    long = make_prompts(a.repeats, 2000, seed=12)
    decode = statistics.median(128 / (generate([p], 129) - generate([p], 1)) for p in short)
    prefill = statistics.median(2000 / generate([p], 1) for p in long)
    row = {
        "peer": f"transformers {a.dtype} eager",
        "ready_seconds": round(ready_seconds, 2),
        "decode_tok_s": round(decode, 2),
        "prefill_tok_s": round(prefill, 1),
    }
    if a.batch:
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        tokenizer.padding_side = "left"
        prompts = make_prompts(a.batch, 500, shared=400, seed=22)
        row[f"batch_{a.batch}_output_tok_s"] = round(a.batch * 64 / generate(prompts, 64), 2)
    row["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(row))


if __name__ == "__main__":
    main()
