"""`deepinfer bench`: how fast a running server answers, as its clients see it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from deepinfer.cli.client_options import ApiKey, ModelName

if TYPE_CHECKING:
    from deepinfer.cli.load import LoadResult


def bench(
    url: Annotated[str, typer.Option(help="The server.")] = "http://127.0.0.1:8000",
    api_key: ApiKey = None,
    model_name: ModelName = None,
    concurrency: Annotated[
        list[int] | None,
        typer.Option(help="Clients, each with one request at a time; give it often for several rows. Default: 1, 8."),
    ] = None,
    num_requests: Annotated[
        int | None, typer.Option(help="Requests of a row. Default: 4 for each client.", min=1)
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(help="About this many tokens in each prompt.", min=1)] = 500,
    shared_tokens: Annotated[int, typer.Option(help="How many of them are common to all prompts.", min=0)] = 400,
    max_tokens: Annotated[int, typer.Option(help="Tokens of each answer.", min=1)] = 64,
    stop_at_eos: Annotated[
        bool, typer.Option("--stop-at-eos", help="Let answers end early; else every answer has --max-tokens.")
    ] = False,
    use_chat: Annotated[bool, typer.Option("--chat", help="Use chat completions instead of completions.")] = False,
    num_warmup: Annotated[int, typer.Option("--warmup", help="Requests before the first row.", min=0)] = 1,
    seed: Annotated[int, typer.Option(help="Makes the prompts repeatable.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure a running server: time to first token, inter-token latency, throughput.

    Closed loop: every client sends its next request when its last answer is complete. The client's own work counts.

    Examples:

    - `deepinfer bench`
    - `deepinfer bench --concurrency 1 --concurrency 32 --prompt-tokens 2000 --shared-tokens 0 --json`
    """
    import asyncio
    import json

    from deepinfer.cli.http_client import HttpClient
    from deepinfer.cli.load import LoadPlan, run_load

    client = HttpClient(url, api_key=api_key)
    name = model_name or asyncio.run(client.first_model())
    rows = []
    for number, num_clients in enumerate(concurrency or [1, 8]):
        plan = LoadPlan(
            model=name,
            num_clients=num_clients,
            num_requests=num_requests or 4 * num_clients,
            num_prompt_tokens=prompt_tokens,
            num_shared_tokens=min(shared_tokens, prompt_tokens),
            max_tokens=max_tokens,
            ignore_eos=not stop_at_eos,
            use_chat=use_chat,
            num_warmup=0 if number else num_warmup,
            seed=seed + number,
        )
        rows.append(asyncio.run(run_load(client, plan)))
    if json_output:
        sys.stdout.write(json.dumps({"url": url, "model": name, "rows": [row.to_json() for row in rows]}) + "\n")
    else:
        _print_table(name, rows)
    if any(row.num_failed for row in rows):
        raise typer.Exit(1)


def _print_table(name: str, rows: Sequence[LoadResult]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=name,
        caption="TTFT: time to first token, ITL: token to token; milliseconds",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("clients", "sent", "tok/s", "TTFT p50", "p99", "ITL p50", "p99", "max", "hits"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        shown = row.to_json()
        ttft, itl = shown["ttft_ms"], shown["itl_ms"]
        table.add_row(
            str(row.plan.num_clients),
            str(row.plan.num_requests),
            f"{shown['output_tokens_per_second']:.1f}",
            *(_milliseconds(value) for value in (ttft["p50"], ttft["p99"], itl["p50"], itl["p99"], itl["max"])),
            f"{100 * shown['cached_ratio']:.0f} %",
        )
    console = Console()
    console.print(table)
    for row in rows:
        for message, count in row.errors.items():
            console.print(f"{count} of {row.plan.num_requests} failed: {message}", style="red", markup=False)


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
