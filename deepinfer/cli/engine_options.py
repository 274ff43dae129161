"""Options of every command that loads a model, and their meaning as one configuration object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from deepinfer.cli.sizes import parse_size
from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig, SpeculativeConfig
from deepinfer.errors import ConfigError

MODEL_PANEL: Final = "Model"
CACHE_PANEL: Final = "KV cache and batching"

ModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH|HF-ID]",
        help="GGUF file, Hugging Face directory, or id like owner/name. Without it: SmolLM2-135M-Instruct, fetched "
        "once if it is not there.",
    ),
]
MaxModelLen = Annotated[
    int | None,
    typer.Option(help="Longest prompt + output in tokens. Default: the model's own.", rich_help_panel=MODEL_PANEL),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=MODEL_PANEL)]
DType = Annotated[
    str,
    typer.Option("--dtype", help="Compute type of the torch path: auto, float32, bfloat16 or float16.",
                 rich_help_panel=MODEL_PANEL),
]  # fmt: skip
CpuBackend = Annotated[
    str,
    typer.Option(help="Operators on a CPU: auto, native or torch.", rich_help_panel=MODEL_PANEL),
]
CpuActivations = Annotated[
    str,
    typer.Option(
        help="Activations in native operators: exact (15 bits), or fast (8 bits, results less precise).",
        rich_help_panel=MODEL_PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(help="Compute threads. Default: the CPUs this process may use.", rich_help_panel=MODEL_PANEL),
]
KVCacheMemory = Annotated[
    str | None,
    typer.Option("--kv-cache-memory", help="Memory for the KV cache, like 2GiB. Default: a share of what is free.",
                 rich_help_panel=CACHE_PANEL),
]  # fmt: skip
KVCacheDType = Annotated[
    str,
    typer.Option("--kv-cache-dtype", help="auto, float32, float16, bfloat16 or int8.", rich_help_panel=CACHE_PANEL),
]
BlockSize = Annotated[
    int, typer.Option(help="Tokens in one block of the KV cache: 16, 32, 64 or 128.", rich_help_panel=CACHE_PANEL)
]
PrefixCaching = Annotated[
    bool,
    typer.Option(
        "--enable-prefix-caching/--no-prefix-caching",
        help="Reuse the KV entries of equal beginnings.",
        rich_help_panel=CACHE_PANEL,
    ),
]
MaxNumSeqs = Annotated[int, typer.Option(help="Requests that run at once.", rich_help_panel=CACHE_PANEL)]
MaxNumBatchedTokens = Annotated[
    int, typer.Option(help="Tokens of one step, prefill and decode together.", rich_help_panel=CACHE_PANEL)
]
MaxNumWaiting = Annotated[
    int, typer.Option(help="Requests that may wait; more are answered with 429.", rich_help_panel=CACHE_PANEL)
]

TargetItl = Annotated[
    float,
    typer.Option(
        "--target-itl-ms",
        help="Most milliseconds between tokens of running requests to aim for, by smaller prefill chunks. 0: no aim.",
        rich_help_panel=CACHE_PANEL,
    ),
]
TargetTtft = Annotated[
    float,
    typer.Option(
        "--target-ttft-ms",
        help="Prompts that wait longer for their first token stretch the aim above, up to 1.6 times. 0: never.",
        rich_help_panel=CACHE_PANEL,
    ),
]

Speculation = Annotated[
    str,
    typer.Option(
        help="Guess tokens ahead: off, or ngram (what followed the last tokens before). Outputs stay the same.",
        rich_help_panel=CACHE_PANEL,
    ),
]
NumDraftTokens = Annotated[
    str,
    typer.Option(
        help="Guesses checked for each request in a step: auto (by confidence and measured cost), or 1 to 15.",
        rich_help_panel=CACHE_PANEL,
    ),
]

OverlapScheduling = Annotated[
    bool,
    typer.Option(
        "--overlap-scheduling/--no-overlap-scheduling",
        help="Plan each step while the one before computes. Outputs stay the same.",
        rich_help_panel=CACHE_PANEL,
    ),
]

DEFAULT_SCHEDULER: Final = SchedulerConfig()
DEFAULT_TARGET_ITL_MS: Final = 1e3 * (DEFAULT_SCHEDULER.target_itl_seconds or 0.0)
DEFAULT_TARGET_TTFT_MS: Final = 1e3 * (DEFAULT_SCHEDULER.target_ttft_seconds or 0.0)
DEFAULT_CACHE: Final = CacheConfig()


def make_engine_config(
    model: Path,
    *,
    max_model_len: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    cpu_backend: str = "auto",
    cpu_activations: str = "exact",
    threads: int | None = None,
    kv_cache_memory: str | None = None,
    kv_cache_dtype: str = "auto",
    block_size: int = DEFAULT_CACHE.block_size,
    prefix_caching: bool = True,
    max_num_seqs: int = DEFAULT_SCHEDULER.max_num_seqs,
    max_num_batched_tokens: int = DEFAULT_SCHEDULER.max_num_batched_tokens,
    max_num_waiting: int = DEFAULT_SCHEDULER.max_num_waiting,
    target_itl_ms: float = DEFAULT_TARGET_ITL_MS,
    target_ttft_ms: float = DEFAULT_TARGET_TTFT_MS,
    speculation: str = "off",
    num_draft_tokens: str = "auto",
    overlap_scheduling: bool = DEFAULT_SCHEDULER.overlap_scheduling,
    served_model_name: str | None = None,
) -> EngineConfig:
    """Join the options.

    Raises:
        ConfigError: one of them is out of range.
    """
    return EngineConfig(
        model=model,
        dtype=dtype,
        device=device,
        cpu_backend=cpu_backend,
        cpu_activations=cpu_activations,
        max_model_len=max_model_len,
        num_threads=threads,
        served_model_name=served_model_name,
        cache=CacheConfig(
            block_size=block_size,
            kv_cache_memory_bytes=None if kv_cache_memory is None else parse_size(kv_cache_memory, "--kv-cache-memory"),
            enable_prefix_caching=prefix_caching,
            kv_cache_dtype=kv_cache_dtype,
        ),
        scheduler=SchedulerConfig(
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_num_waiting=max_num_waiting,
            target_itl_seconds=target_itl_ms / 1e3 if target_itl_ms else None,
            target_ttft_seconds=target_ttft_ms / 1e3 if target_ttft_ms else None,
            overlap_scheduling=overlap_scheduling,
        ),
        speculative=SpeculativeConfig(proposer=speculation, num_draft_tokens=_parse_num_draft_tokens(num_draft_tokens)),
    )


def _parse_num_draft_tokens(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"--num-draft-tokens must be auto or a number from 1 to 15, but is {text!r}")
    return int(text)
