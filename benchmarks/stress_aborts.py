"""Many short requests to a real server, a part of them aborted in each phase of their life.

python benchmarks/stress_aborts.py [--requests 5000] [--clients 16] [--server-arguments "--kv-cache-memory 128MiB"]

Starts `deepinfer serve`, sends chats of 1 to 8 tokens (streamed, whole, n = 2) and closes some connections while the
request waits, while its prompt is computed, while it decodes, and after its last token. Prints one line per thousand
requests and exits with 1 unless all blocks came back, memory grew by at most 2% after the first fifth, an idle server
used no processor, and the log has no error. The KV cache is small, so that the first fifth touches all of its pages.
"""

import argparse
import asyncio
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

READY_SECONDS = 300.0
ANSWER_SECONDS = 600.0
MAX_GROWTH = 1.02
MAX_IDLE_SHARE = 0.01
PHASES = ("complete", "complete", "complete", "waiting", "prefill", "decode", "last token")
WORDS = ["river", "stone", "lamp", "seven", "quiet", "garden", "copper", "winter", "letter", "north", "bread", "engine"]


def make_body(rng: random.Random, phase: str) -> bytes:
    """One request; prompts share beginnings, and those left during prefill are long."""
    num_words = rng.randint(40, 100) if phase == "prefill" else rng.randint(1, 12)
    body = {
        "messages": [{"role": "user", "content": " ".join(rng.choices(WORDS, k=num_words))}],
        "max_tokens": 8 if phase == "decode" else rng.randint(1, 8),
        "stream": phase in ("decode", "last token") or rng.random() < 0.5,
        "n": 2 if rng.random() < 0.1 else 1,
        "temperature": rng.choice((0, 1)),
    }
    return json.dumps(body).encode()


async def send_one(port: int, rng: random.Random) -> str:
    """Send a request and leave it in a random phase; returns what happened."""
    phase = rng.choice(PHASES)
    body = make_body(rng, phase)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        if phase == "waiting":
            return "left waiting"
        if phase == "prefill":
            await asyncio.sleep(rng.random() * 0.3)
            return "left in prefill"
        end = {"decode": b'"content":', "last token": b'"finish_reason":"'}.get(phase)
        data = b""
        while end is None or end not in data:
            piece = await asyncio.wait_for(reader.read(65536), ANSWER_SECONDS)
            if not piece:
                break
            data += piece
        if end is not None and end in data:
            return f"left in {phase}"
        is_whole = data.startswith(b"HTTP/1.1 200") and b'"finish_reason":"' in data
        return "complete" if is_whole else f"bad: {data[:300]!r}"
    finally:
        writer.transport.abort()


async def read_metrics(port: int) -> dict[str, float]:
    """Gauges and counters by name, labels dropped, summed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    values: Counter[str] = Counter()
    for name, value in re.findall(r"^deepinfer:(\w+)\S* (\S+)$", text, re.MULTILINE):
        values[name] += float(value)
    return dict(values)


async def wait_until_idle(port: int) -> dict[str, float]:
    """The metrics once nothing runs or waits."""
    for _ in range(300):
        metrics = await read_metrics(port)
        if not metrics["num_requests_running"] and not metrics["num_requests_waiting"]:
            break
        await asyncio.sleep(0.1)
    return metrics


async def send_all(port: int, process: psutil.Process, num_requests: int, num_clients: int) -> list[str]:
    """Drive the server in five parts; returns what went wrong."""
    results: Counter[str] = Counter()
    memory: list[int] = []
    start = await wait_until_idle(port)
    for part in range(5):
        begin = time.monotonic()
        numbers = iter(range(part * num_requests // 5, (part + 1) * num_requests // 5))

        async def run_client(numbers: Iterator[int] = numbers) -> None:
            for number in numbers:
                results[await send_one(port, random.Random(number))] += 1

        await asyncio.gather(*(run_client() for _ in range(num_clients)))
        metrics = await wait_until_idle(port)
        memory.append(process.memory_info().rss)
        print(f"{sum(results.values())} requests, {memory[-1] / 2**20:.1f} MiB, {time.monotonic() - begin:.0f} s, "
              f"KV use {metrics['kv_cache_usage_ratio']}", flush=True)  # fmt: skip
    print(dict(results), f"preemptions {metrics['num_preemptions_total']:.0f}")
    begin, before = time.monotonic(), sum(process.cpu_times()[:2])
    await asyncio.sleep(5)
    idle_share = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - begin)
    growth = memory[-1] / memory[0]
    print(f"memory after the last / first part: {growth:.4f}; idle processor share: {idle_share:.4f}")
    faults = [text for text in results if text.startswith("bad")]
    if metrics["kv_cache_usage_ratio"] != start["kv_cache_usage_ratio"]:
        faults.append(f"blocks are still held: {metrics['kv_cache_usage_ratio']} of all")
    if metrics["num_requests_running"] or metrics["num_requests_waiting"]:
        faults.append("requests are still in the engine")
    if growth > MAX_GROWTH:
        faults.append(f"memory grew by a factor of {growth:.4f}")
    if idle_share > MAX_IDLE_SHARE:
        faults.append(f"the idle server uses {idle_share:.1%} of a processor")
    return faults


async def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Return when the server takes requests."""
    for _ in range(int(READY_SECONDS)):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended at its start with code {server.returncode}")
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            if b" 200 " in answer[:20]:
                return
        except OSError:
            pass
        await asyncio.sleep(1)
    raise TimeoutError(f"the server was not ready after {READY_SECONDS} s")


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--port", type=int, default=18590)
    parser.add_argument("--server-arguments", default="--kv-cache-memory 128MiB")
    options = parser.parse_args()
    command = [str(Path(sys.executable).with_name("deepinfer")), "serve", "--port", str(options.port)]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen([*command, *shlex.split(options.server_arguments)], stdout=log, stderr=log)
        try:
            asyncio.run(wait_until_ready(server, options.port))
            process = psutil.Process(server.pid)
            faults = asyncio.run(send_all(options.port, process, options.requests, options.clients))
        finally:
            server.terminate()
            code = server.wait(60)
        log.seek(0)
        bad_lines = [line for line in log if re.search(r"ERROR|CRITICAL|Traceback", line)]
    faults += [f"log: {line.strip()}" for line in bad_lines[:5]]
    if code != 0:
        faults.append(f"the server ended with code {code}")
    print("\n".join(faults) or "no fault")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
