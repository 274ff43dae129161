"""Times OpenVINO GenAI on one GGUF file, in process: python benchmarks/peer_openvino.py FILE.gguf

Prints one JSON object with the rows of peer_transformers.py. Needs the PyPI package openvino-genai
in the environment it is started with.
"""

import argparse
import json
import resource
import statistics
import time

START = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--batches", default="8,32", help="batch sizes handed over at once")
    parser.add_argument("--repeats", type=int, default=3)
    a = parser.parse_args()

    import openvino_genai
    from workload import make_prompts

    pipeline = openvino_genai.LLMPipeline(a.model, "CPU")

    def generate(prompts: list[str], num_tokens: int) -> float:
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = num_tokens
        config.min_new_tokens = num_tokens
        config.ignore_eos = True
        config.do_sample = False
        config.apply_chat_template = False
        begin = time.perf_counter()
        pipeline.generate(prompts, config)
        return time.perf_counter() - begin

    generate(["Hello"], 2)
    ready_seconds = time.perf_counter() - START
    decode = statistics.median(
        128 / (generate([p], 129) - generate([p], 1)) for p in make_prompts(a.repeats, 16, seed=11)
    )
    prefill = statistics.median(2000 / generate([p], 1) for p in make_prompts(a.repeats, 2000, seed=12))
    warm_prompt = make_prompts(1, 2000, seed=13)
    cold = generate(warm_prompt, 1)
    warm = statistics.median(generate(warm_prompt, 1) for _ in range(a.repeats))
    row = {
        "peer": f"OpenVINO GenAI {openvino_genai.__version__.split('-')[0]}",
        "ready_seconds": round(ready_seconds, 2),
        "decode_tok_s": round(decode, 2),
        "prefill_tok_s": round(prefill, 1),
        "cold_2000_ms": round(cold * 1e3, 1),
        "warm_2000_ms": round(warm * 1e3, 1),
    }
    for size in (int(s) for s in a.batches.split(",")):
        prompts = make_prompts(size, 500, shared=400, seed=20 + size)
        row[f"batch_{size}_output_tok_s"] = round(size * 64 / generate(prompts, 64), 2)
    row["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(row))


if __name__ == "__main__":
    main()
