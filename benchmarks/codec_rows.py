"""Rows of the codec benchmark beyond encoding speed: threads, requests, decoding, streams, worst cases, appending.

Times are wall time, the best of a few runs; peers run in turn with the codec, in this process.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import importlib
import json
import os
import random
import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WORST = {"a": "a", "digits": "7", "spaces": " ", "base64": "QmFzZTY0", "han": "漢字東京"}
RANDOM_WORST = {
    "random a-z": "abcdefghijklmnopqrstuvwxyz",
    "random Han": "".join(map(chr, range(0x4E00, 0x9FA6))),
    "emoji": "😀👍🏽🚀❤️👩‍💻",
}
CODECS = ("recipe_rs", "deepseek_recipe")
# The V4 vocabulary has no system token, which prompts of V4.1 need.
REQUEST_MODEL = "DeepSeek-V4-Pro"
STREAM_MODEL = "DeepSeek-V4.1-Flash"


def best(run: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def show_rows(path: str, texts: dict[str, str]) -> None:
    """Prints every row; `texts` are the corpora by name."""
    import recipe_rs

    tokenizer = recipe_rs.Tokenizer.from_file(path)
    print("\nOne text on two threads, fresh for the first run, hot for the best of the others")
    pieces = [text.encode()[:size].decode(errors="ignore") for text in texts.values() for size in (65_536, 310_000)]
    for text in [*pieces, "\n".join(texts.values())]:
        show_threads(recipe_rs.Tokenizer.from_file(path), text)
    text = "\n".join(texts.values())
    show_decoding(path, tokenizer, text)
    prompt = recipe_rs.GrowingPrompt(tokenizer)
    prompt.append(text)
    print(f"append 'and so on. ' to {len(prompt)} tokens: {best(lambda: prompt.append('and so on. ')) * 1e6:.0f} us")
    show_codecs(path, text)
    show_worst_cases(tokenizer)
    show_memory()


def show_threads(tokenizer: Any, text: str) -> None:
    """Prints the time of one text on one and on two threads."""
    start = time.perf_counter()
    ids = tokenizer.encode_plain(text, num_threads=2)
    fresh = time.perf_counter() - start
    one, two = (best(lambda n=n: tokenizer.encode_plain(text, num_threads=n), 9) for n in (1, 2))  # type: ignore[misc]
    print(
        f"  {len(text.encode()):8} B {len(ids) // 4:8} tokens: fresh, 2 threads {fresh * 1e3:6.2f} ms; "
        f"hot {one * 1e3:6.2f} ms, 2 threads {two * 1e3:6.2f} ms, {one / two:.2f}x"
    )


def show_decoding(path: str, tokenizer: Any, text: str) -> None:
    """Prints the decoding speed beside that of Hugging Face tokenizers."""
    ids = memoryview(tokenizer.encode_plain(text)).cast("I").tolist()
    ours = best(lambda: tokenizer.decode(ids))
    line = f"decode, list of int included: {len(ids) / ours / 1e6:.1f} M tokens/s"
    if find_spec("tokenizers"):
        theirs = importlib.import_module("tokenizers").Tokenizer.from_file(path)
        line += f", {best(lambda: theirs.decode(ids), 2) / ours:.1f}x Hugging Face tokenizers"
    print(line)


def show_codecs(path: str, text: str) -> None:
    """Prints a 77,000-token request and an output stream, ours beside the official codec where it is installed."""
    data = text.encode()[: 77_000 * 4]
    turns = [data[start : start + 4000].decode(errors="ignore") for start in range(0, len(data), 4000)]
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": turn} for index, turn in enumerate(turns)]
    num_messages = len(messages) - (len(messages) + 1) % 2  # the last one is the user's
    body = json.dumps({"model": REQUEST_MODEL, "messages": messages[:num_messages]})
    answer = answer_text(text)
    times: dict[str, list[float]] = {}
    for name in CODECS:
        if find_spec(name) is None:
            print(f"{name} is not installed")
            continue
        codec = importlib.import_module(name)
        tokenizer = codec.Tokenizer.from_file(path)
        encoding = codec.DeepseekV4Encoding().with_tokenizer(tokenizer)
        num_ids = len(request_ids(codec, encoding, body))
        output_ids = [int(token_id) for token_id in tokenizer.encode(answer)]
        times[name] = [
            best(lambda codec=codec, encoding=encoding: request_ids(codec, encoding, body), 5),  # type: ignore[misc]
            best(lambda codec=codec, t=tokenizer, ids=output_ids: parse(codec, t, ids), 3),  # type: ignore[misc]
        ]
        request, stream = times[name]
        print(
            f"{name:16} request JSON to {num_ids} ids {request * 1e3:7.2f} ms; stream of {len(output_ids)} tokens, one "
            f"a push, to JSON chunks: {len(output_ids) / stream / 1e3:.0f} thousand tokens/s"
        )
    if len(times) == 2:
        ratios = [theirs / ours for ours, theirs in zip(*(times[name] for name in CODECS), strict=True)]
        print(f"  official / ours: request {ratios[0]:.1f}, stream {ratios[1]:.1f}")


def request_ids(codec: Any, encoding: Any, body: str) -> Any:
    """Ids of a chat request, as a buffer where the codec has one."""
    request = codec.ChatCompletionRequest(json.loads(body)).convert(codec.ConversionOptions())
    if hasattr(encoding, "encode_rendered"):
        return memoryview(encoding.encode_rendered(encoding.render_conversation(request.conversation))).cast("I")
    return encoding.encode(request.conversation)


def answer_text(text: str) -> str:
    """A model's output: reasoning, an answer and two calls."""
    call = (
        '<｜DSML｜ invoke name="search"><｜DSML｜ parameter name="query" string="true">{}</｜DSML｜ parameter>'
        "</｜DSML｜ invoke>"
    )
    prose = re.sub("[<｜]", " ", text)
    calls = "".join(call.format(prose[start : start + 2000]) for start in (40_000, 50_000))
    return f"{prose[:20_000]}</think>{prose[20_000:40_000]}\n\n<｜DSML｜ calls>{calls}</｜DSML｜ calls>"


def parse(codec: Any, tokenizer: Any, ids: list[int]) -> None:
    """Drives a stream token by token to the JSON of its chunks."""
    body = {"model": STREAM_MODEL, "messages": [{"role": "user", "content": "x"}], "stream": True}
    stage = codec.ThinkingInitialStage.ReasoningStart
    if codec.__name__ == "recipe_rs":
        generator = codec.ChatCompletionChunkGenerator("ID", "MODEL", stage)
    else:
        request = codec.ChatCompletionRequest(body).convert(codec.ConversionOptions())
        generator = codec.ChatCompletionRequest.chunk_generator(request, "ID", "MODEL")
    options = codec.ParsingOptions(thinking_initial_stage=stage)
    processor = codec.StreamProcessor(generator, options, tokenizer)
    chunks = [codec.InferenceChunk.ready(prompt_usage=codec.PromptUsage(prompt_tokens=7, prompt_cache_hit_tokens=2))]
    chunks += [codec.InferenceChunk.tokens([token_id], None) for token_id in ids]
    for inference in [*chunks, codec.InferenceChunk.finish(codec.InferenceFinishReason.Stop)]:
        for chunk in processor.push(inference):
            chunk.to_json()
    for chunk in processor.finish():
        chunk.to_json()


def show_worst_cases(tokenizer: Any) -> None:
    """Prints the time of one word of 1 MB and how it grows from 125 KB."""
    rng = random.Random(4)
    longs = {name: unit * (1_000_000 // len(unit.encode())) for name, unit in WORST.items()}
    for name, letters in RANDOM_WORST.items():
        width = len(letters.encode()) / len(letters)
        longs[name] = "".join(rng.choices(letters, k=int(1_000_000 / width)))
    for name, long in longs.items():
        times = [
            best(lambda part=part: tokenizer.encode_plain(part, num_threads=1), 3)  # type: ignore[misc]
            for part in (long[: len(long) // 8], long)
        ]
        print(f"1 MB of {name:10} {times[1] * 1e3:7.1f} ms, {times[1] / times[0]:.1f}x the time of 125 KB")


def show_memory() -> None:
    """Prints the peak memory of this process, Python included."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        print(f"peak memory of process {os.getpid()}, all rows: {int(peak) / 1024:.0f} MiB")
