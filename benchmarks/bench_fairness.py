"""What long prompts do to the chats beside them, with the time budget of steps on and off.

    scripts/bench fairness [--chats 16] [--long-tokens 7000] [--longs 4] [--load 0.5] [--target-itl-ms 250]
    scripts/bench fairness --simulate fast|slow

The first form starts `deepinfer serve` with the budget and again without. It times one long prompt alone, and then
sends long prompts so often that they need the share `--load` of the machine's time, because a rate fixed in advance
would either drown a machine or bore it. Chats answer all the time. The second form runs the scheduler against a
simulated machine, repeatable and done in seconds: a fast one with 10,000 prompt tokens a second and one prompt of 7,000
tokens each second, or a slow one with the step times of two AVX2 cores, 500 tokens a second, and one each 28 seconds.

Printed: gaps between tokens of the chats, first-token times of the long prompts, longest time in the queue beside the
aging bound. Only the ratios of one run mean anything.
"""

import argparse
import asyncio
import itertools
import json
import random
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workload import words

from deepinfer import EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.cli.http_client import HttpClient, ServerError
from deepinfer.cli.load import summarize
from deepinfer.cost import StepCost
from deepinfer.engine.build import make_engine_core
from deepinfer.testing.simulated_machine import SimulatedMachine

READY_SECONDS = 300.0
CHAT_PROMPT_WORDS, CHAT_TOKENS = 20, 96
BOUND_SECONDS = SchedulerConfig().max_wait_seconds


@dataclass(frozen=True)
class Simulated:
    """A machine that is only calculated, and what it is given to do."""

    cost: StepCost
    target_ms: float
    max_num_batched_tokens: int
    interval_seconds: float
    seconds: float


SIMULATED = {
    "fast": Simulated(StepCost(2e-3, 1e-4, 4e-9, 3e-4, 5e-8), 40.0, 2048, 1.0, 60.0),
    "slow": Simulated(StepCost(5.4e-3, 2e-3, 1e-8, 2.4e-3, 1e-7), 250.0, 512, 28.0, 300.0),
}


@dataclass
class Figures:
    """What was seen; seconds."""

    chat_gaps: list[float] = field(default_factory=list)
    long_ttfts: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def row(self, name: str) -> dict[str, Any]:
        """The figures in milliseconds."""
        gaps, ttfts = summarize(self.chat_gaps), summarize(self.long_ttfts)
        return {
            "budget": name,
            "chat_itl_ms": {key: gaps[key] for key in ("p50", "p99", "max")},
            "long_ttft_ms": {key: ttfts[key] for key in ("mean", "max")},
            "num_gaps": len(self.chat_gaps),
            "num_long": len(self.long_ttfts),
            "longest_wait_ms": round(1e3 * max(self.waits, default=0.0)),
            "aging_bound_ms": round(1e3 * BOUND_SECONDS),
        }


async def stream_times(client: HttpClient, model: str, prompt: str, max_tokens: int) -> tuple[list[float], float]:
    """Times of the tokens of one answer, and the time it spent in the queue."""
    body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
    times, wait = [], 0.0
    async for event in client.stream("/v1/completions", body | {"stream": True}):
        if any(choice.get("text") for choice in event.data.get("choices") or ()):
            times.append(event.time)
        wait = (event.data.get("timings") or {}).get("queue_ms", 1e3 * wait) / 1e3
    return times, wait


async def measure(client: HttpClient, model: str, a: argparse.Namespace, alone_seconds: float) -> Figures:
    """Chats all the time, long prompts at a steady pace, until the last long one has its first token."""
    figures = Figures()
    is_over = asyncio.Event()

    async def chat(number: int) -> None:
        rng = random.Random(f"chat {number}")
        while not is_over.is_set():
            times, wait = await stream_times(client, model, words(rng, CHAT_PROMPT_WORDS), CHAT_TOKENS)
            figures.waits.append(wait)
            chat_times.append(times)

    async def long(number: int) -> None:
        rng = random.Random(f"long {number}")
        begin = time.perf_counter()
        times, wait = await stream_times(client, model, words(rng, a.long_tokens), 2)
        figures.waits.append(wait)
        figures.long_ttfts.append(times[0] - begin)

    chat_times: list[list[float]] = []
    chats = [asyncio.create_task(chat(number)) for number in range(a.chats)]
    await asyncio.sleep(min(5.0, alone_seconds))
    start = time.perf_counter()
    longs = []
    for number in range(a.longs):
        longs.append(asyncio.create_task(long(number)))
        await asyncio.sleep(alone_seconds / a.load)
    await asyncio.gather(*longs)
    end = time.perf_counter()
    is_over.set()
    await asyncio.gather(*chats)
    for times in chat_times:
        figures.chat_gaps += [
            later - earlier for earlier, later in itertools.pairwise(times) if start < later and earlier < end
        ]
    return figures


def run_server(a: argparse.Namespace, target_ms: float, port: int) -> dict[str, Any]:
    """Figures of one server with one target."""
    deepinfer = Path(sys.executable).with_name("deepinfer")
    command = [deepinfer, "serve", "--port", str(port), "--target-itl-ms", str(target_ms), *shlex.split(a.server)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            client = HttpClient(f"http://127.0.0.1:{port}")
            deadline, model = time.monotonic() + READY_SECONDS, ""
            while not model and time.monotonic() < deadline and server.poll() is None:
                time.sleep(0.1)
                try:
                    model = asyncio.run(client.first_model())
                except ServerError:
                    continue
            if not model:
                server.kill()
                raise SystemExit(f"the server did not start: {server.stderr.read() if server.stderr else ''}")
            begin = time.perf_counter()
            times, _ = asyncio.run(stream_times(client, model, words(random.Random("alone"), a.long_tokens), 1))
            alone_seconds = times[0] - begin
            figures = asyncio.run(measure(client, model, a, alone_seconds))
            name = f"{target_ms:g} ms" if target_ms else "off"
            return figures.row(name) | {"long_alone_ms": round(1e3 * alone_seconds)}
        finally:
            server.terminate()


def simulate(target_ms: float, a: argparse.Namespace) -> dict[str, Any]:
    """Long prompts at a steady pace beside the chats, on a simulated machine."""
    kind = SIMULATED[a.simulate]
    machine = SimulatedMachine(kind.cost)
    scheduler = SchedulerConfig(
        max_num_batched_tokens=kind.max_num_batched_tokens, target_itl_seconds=target_ms / 1e3 or None
    )
    core = make_engine_core(
        EngineConfig(model=Path("simulated"), scheduler=scheduler), machine, model_identity=b"",
        clock=lambda: machine.now,
    )  # fmt: skip
    rng = random.Random(1)

    def add(name: str, length: int, max_tokens: int) -> None:
        params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
        prompt = [rng.randrange(1000) for _ in range(length)]
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=machine.now))

    for number in range(a.chats):
        add(f"chat{number}", 50, 7000)
    figures, last, num_long = Figures(), {}, 0
    while machine.now < kind.seconds:
        if machine.now > 1.0 + num_long * kind.interval_seconds:
            add(f"long{num_long}", a.long_tokens, 4)
            num_long += 1
        for output in core.step().outputs:
            name = output.request_id
            if name.startswith("chat"):
                if name in last and num_long > 1:  # the first long prompt teaches the cost model
                    figures.chat_gaps.append(machine.now - last[name])
                last[name] = machine.now
            if output.stats is not None:
                figures.waits.append(output.stats.queue_seconds)
                if name.startswith("long"):
                    figures.long_ttfts.append(output.stats.queue_seconds + output.stats.prefill_seconds)
    return figures.row(f"{target_ms:g} ms" if target_ms else "off")


def main() -> None:
    """Measure with the budget and without, and print both and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chats", type=int, default=16)
    parser.add_argument("--long-tokens", type=int, default=7000)
    parser.add_argument("--longs", type=int, default=4, help="long prompts in each run")
    parser.add_argument("--load", type=float, default=0.5, help="share of the time that long prompts alone would take")
    parser.add_argument("--target-itl-ms", type=float, default=250.0)
    parser.add_argument("--port", type=int, default=8471)
    parser.add_argument("--server", default="", help="further arguments of the server")
    parser.add_argument("--simulate", choices=SIMULATED)
    a = parser.parse_args()
    if a.simulate:
        target = SIMULATED[a.simulate].target_ms
        rows = [simulate(target, a), simulate(0.0, a)]
    else:
        target = a.target_itl_ms
        rows = [run_server(a, target, a.port), run_server(a, 0.0, a.port + 1)]
    for row in rows:
        print(json.dumps(row))
    on, off = rows
    print(
        f"p99 gap of the chats / target: {on['chat_itl_ms']['p99'] / target:.2f} with the budget, "
        f"{off['chat_itl_ms']['p99'] / target:.2f} without; mean first-token time of long prompts, with / without: "
        f"{on['long_ttft_ms']['mean'] / off['long_ttft_ms']['mean']:.2f}"
    )


if __name__ == "__main__":
    main()
