"""Closed-loop load on a server, and what its clients saw."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deepinfer.cli.http_client import HttpClient, ServerError

# Common short words: one token each, with the space before it, in the vocabularies of current models.
_WORD_LIST: Final = (
    "river stone light green apple table north winter paper garden music silver window bread cloud forest island "
    "letter market mountain ocean orange pencil rain road rock sand shadow shoulder sister snow spring square star "
    "street summer sugar tree village voice wall water west wheel wind wood yellow"
)
WORDS: Final = tuple(_WORD_LIST.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One row of a measurement."""

    model: str
    num_clients: int
    num_requests: int
    num_prompt_tokens: int
    num_shared_tokens: int
    max_tokens: int
    ignore_eos: bool = True
    use_chat: bool = False
    num_warmup: int = 0
    seed: int = 0


@dataclass(slots=True)
class RequestRecord:
    """What one client saw of one request; seconds."""

    ttft_seconds: float = 0.0
    e2e_seconds: float = 0.0
    gaps_seconds: list[float] = field(default_factory=list)
    num_prompt_tokens: int = 0
    num_output_tokens: int = 0
    num_cached_tokens: int = 0


@dataclass(slots=True)
class LoadResult:
    """All requests of a row."""

    plan: LoadPlan
    wall_seconds: float
    records: list[RequestRecord]
    errors: Counter[str]

    @property
    def num_failed(self) -> int:
        """Requests without a complete answer."""
        return sum(self.errors.values())

    def to_json(self) -> dict[str, Any]:
        """Figures of the row; times in milliseconds, None where nothing was seen."""
        records = self.records
        num_output = sum(record.num_output_tokens for record in records)
        num_prompt = sum(record.num_prompt_tokens for record in records)
        num_cached = sum(record.num_cached_tokens for record in records)
        return {
            "num_clients": self.plan.num_clients,
            "num_requests": self.plan.num_requests,
            "num_failed": self.num_failed,
            "errors": dict(self.errors),
            "wall_seconds": round(self.wall_seconds, 4),
            "num_prompt_tokens": num_prompt,
            "num_output_tokens": num_output,
            "output_tokens_per_second": round(num_output / self.wall_seconds, 2),
            "total_tokens_per_second": round((num_output + num_prompt) / self.wall_seconds, 2),
            "requests_per_second": round(len(records) / self.wall_seconds, 3),
            "cached_ratio": round(num_cached / num_prompt, 4) if num_prompt else 0.0,
            "ttft_ms": summarize([record.ttft_seconds for record in records]),
            "itl_ms": summarize([gap for record in records for gap in record.gaps_seconds]),
            "e2e_ms": summarize([record.e2e_seconds for record in records]),
        }


def summarize(seconds: Sequence[float]) -> dict[str, float | None]:
    """Median, tails and extremes in milliseconds, by linear interpolation between the nearest ranks."""
    ordered = sorted(seconds)
    return {
        "mean": round(1e3 * sum(ordered) / len(ordered), 3) if ordered else None,
        **{f"p{share}": quantile(ordered, share / 100) for share in (50, 90, 99)},
        "max": quantile(ordered, 1.0),
    }


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """A quantile of sorted seconds, in milliseconds."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return round(1e3 * (ordered[low] + (position - low) * (ordered[high] - ordered[low])), 3)


def make_prompts(plan: LoadPlan, count: int, *, salt: str = "") -> list[str]:
    """Prompts of random words that share their beginning."""
    shared = random.Random(f"{plan.seed} shared {salt}").choices(WORDS, k=plan.num_shared_tokens)
    num_own = plan.num_prompt_tokens - plan.num_shared_tokens
    return [
        " ".join(shared + random.Random(f"{plan.seed} {salt} {index}").choices(WORDS, k=num_own))
        for index in range(count)
    ]


async def run_load(client: HttpClient, plan: LoadPlan) -> LoadResult:
    """Send all requests of a plan.

    Raises:
        ServerError: a warm-up request failed, so that measuring makes no sense.
    """
    for prompt in make_prompts(plan, plan.num_warmup, salt="warm-up"):
        await measure_one(client, plan, prompt)
    waiting = make_prompts(plan, plan.num_requests)
    waiting.reverse()
    records: list[RequestRecord] = []
    errors: Counter[str] = Counter()

    async def run_client() -> None:
        while waiting:
            try:
                records.append(await measure_one(client, plan, waiting.pop()))
            except ServerError as error:
                errors[str(error)] += 1

    begin = time.perf_counter()
    await asyncio.gather(*(run_client() for _ in range(plan.num_clients)))
    return LoadResult(plan, time.perf_counter() - begin, records, errors)


async def measure_one(client: HttpClient, plan: LoadPlan, prompt: str) -> RequestRecord:
    """Send one request and take its times.

    Raises:
        ServerError: there was no complete answer.
    """
    body: dict[str, Any] = {
        "model": plan.model,
        "max_tokens": plan.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if plan.ignore_eos:
        body["ignore_eos"] = True
    if plan.use_chat:
        path = "/v1/chat/completions"
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        path = "/v1/completions"
        body["prompt"] = prompt
    record = RequestRecord()
    times: list[float] = []
    begin = time.perf_counter()
    async for event in client.stream(path, body):
        for choice in event.data.get("choices") or ():
            delta = choice.get("delta") or {}
            if choice.get("text") or delta.get("content") or delta.get("reasoning_content"):
                times.append(event.time)
        usage = event.data.get("usage")
        if usage:
            record.num_prompt_tokens = usage.get("prompt_tokens") or 0
            record.num_output_tokens = usage.get("completion_tokens") or 0
            record.num_cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if not times:
        raise ServerError("an answer had no text")
    record.e2e_seconds = time.perf_counter() - begin
    record.ttft_seconds = times[0] - begin
    record.gaps_seconds = [later - earlier for earlier, later in itertools.pairwise(times)]
    return record
