"""`deepinfer generate`: one answer or continuation on standard output."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from deepinfer.cli.client_options import (
    DEFAULT_TEMPERATURE,
    DEFAULT_TOP_P,
    ApiKey,
    MaxTokens,
    ModelName,
    Seed,
    System,
    Temperature,
    TopP,
    Url,
)
from deepinfer.cli.engine_options import CpuActivations, CpuBackend, Device, DType, KVCacheMemory, MaxModelLen, Threads


def generate(
    prompt: Annotated[str, typer.Argument(help="The prompt; - reads it from standard input.")],
    load: Annotated[
        str | None,
        typer.Option(
            "--load", metavar="PATH|HF-ID", help="Model to load when there is no --url. Default: SmolLM2-135M-Instruct."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the text as it is, without a chat template.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object with text and usage.")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    model_name: ModelName = None,
    system: System = None,
    max_tokens: MaxTokens = 512,
    temperature: Temperature = DEFAULT_TEMPERATURE,
    top_p: TopP = DEFAULT_TOP_P,
    seed: Seed = None,
    max_model_len: MaxModelLen = None,
    device: Device = "auto",
    dtype: DType = "auto",
    cpu_backend: CpuBackend = "auto",
    cpu_activations: CpuActivations = "exact",
    threads: Threads = None,
    kv_cache_memory: KVCacheMemory = None,
) -> None:
    """Answer one prompt.

    Examples:

    - `deepinfer generate "Name three rivers." --temperature 0`
    - `cat essay.txt | deepinfer generate - --system "Summarise in one sentence." --url http://127.0.0.1:8000`
    """
    import asyncio

    from deepinfer.cli.prompt_text import check_text, read_prompt
    from deepinfer.cli.target import open_target

    text = read_prompt(prompt)
    system = check_text(system, "--system") if system else None
    given = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "seed": seed}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    options["stream_options"] = {"include_usage": True}
    with open_target(
        load,
        url=url,
        api_key=api_key,
        model_name=model_name,
        max_model_len=max_model_len,
        device=device,
        dtype=dtype,
        cpu_backend=cpu_backend,
        cpu_activations=cpu_activations,
        threads=threads,
        kv_cache_memory=kv_cache_memory,
    ) as target:
        if raw:
            events = target.stream_completion(text, options)
        else:
            messages = [{"role": "user", "content": text}]
            if system:
                messages.insert(0, {"role": "system", "content": system})
            events = target.stream_chat(messages, options)
        asyncio.run(_print(events, as_json=json_output))


async def _print(events: Any, *, as_json: bool) -> None:
    import json

    pieces: list[str] = []
    ending: dict[str, Any] = {}
    async for event in events:
        for choice in event.data.get("choices") or ():
            piece = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            pieces.append(piece)
            if not as_json:
                sys.stdout.write(piece)
                sys.stdout.flush()
            if choice.get("finish_reason"):
                ending["finish_reason"] = choice["finish_reason"]
        for key in ("usage", "timings"):
            if event.data.get(key):
                ending[key] = event.data[key]
    if as_json:
        sys.stdout.write(json.dumps({"text": "".join(pieces)} | ending, ensure_ascii=False))
    sys.stdout.write("\n")
