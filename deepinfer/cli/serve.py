"""`deepinfer serve`: the server with a model behind it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from deepinfer.cli.engine_options import (
    DEFAULT_CACHE,
    DEFAULT_SCHEDULER,
    DEFAULT_TARGET_ITL_MS,
    DEFAULT_TARGET_TTFT_MS,
    BlockSize,
    CpuActivations,
    CpuBackend,
    Device,
    DType,
    KVCacheDType,
    KVCacheMemory,
    MaxModelLen,
    MaxNumBatchedTokens,
    MaxNumSeqs,
    MaxNumWaiting,
    ModelArgument,
    NumDraftTokens,
    OverlapScheduling,
    PrefixCaching,
    Speculation,
    TargetItl,
    TargetTtft,
    Threads,
    make_engine_config,
)

SERVER_PANEL: Final = "Server"


def serve(
    model: ModelArgument = None,
    host: Annotated[str, typer.Option(help="Address to listen on.", rich_help_panel=SERVER_PANEL)] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", rich_help_panel=SERVER_PANEL)] = 8000,
    served_model_name: Annotated[
        str | None,
        typer.Option(help="Id of the model in the API. Default: from the file's name.", rich_help_panel=SERVER_PANEL),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="Further name requests may use for it; may be given often.", rich_help_panel=SERVER_PANEL),
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            help="Key that requests must carry; may be given often. Better: DEEPINFER_API_KEYS, which no process list "
            "shows.",
            rich_help_panel=SERVER_PANEL,
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Origin a browser may call from; may be given often. Default: any.", rich_help_panel=SERVER_PANEL
        ),
    ] = None,
    max_body_size: Annotated[str, typer.Option(help="Largest request body.", rich_help_panel=SERVER_PANEL)] = "32MiB",
    drain_timeout: Annotated[
        float, typer.Option(help="Seconds running requests may go on after SIGTERM.", rich_help_panel=SERVER_PANEL)
    ] = 30.0,
    log_level: Annotated[
        str, typer.Option(help="debug, info, warning or error.", rich_help_panel=SERVER_PANEL)
    ] = "info",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.", rich_help_panel=SERVER_PANEL)] = False,
    max_model_len: MaxModelLen = None,
    device: Device = "auto",
    dtype: DType = "auto",
    cpu_backend: CpuBackend = "auto",
    cpu_activations: CpuActivations = "exact",
    threads: Threads = None,
    kv_cache_memory: KVCacheMemory = None,
    kv_cache_dtype: KVCacheDType = "auto",
    block_size: BlockSize = DEFAULT_CACHE.block_size,
    prefix_caching: PrefixCaching = True,
    max_num_seqs: MaxNumSeqs = DEFAULT_SCHEDULER.max_num_seqs,
    max_num_batched_tokens: MaxNumBatchedTokens = DEFAULT_SCHEDULER.max_num_batched_tokens,
    max_num_waiting: MaxNumWaiting = DEFAULT_SCHEDULER.max_num_waiting,
    target_itl_ms: TargetItl = DEFAULT_TARGET_ITL_MS,
    target_ttft_ms: TargetTtft = DEFAULT_TARGET_TTFT_MS,
    speculation: Speculation = "off",
    num_draft_tokens: NumDraftTokens = "auto",
    overlap_scheduling: OverlapScheduling = DEFAULT_SCHEDULER.overlap_scheduling,
) -> None:
    """Serve a model over an OpenAI-compatible HTTP API, with a playground at /.

    Examples:

    - `deepinfer serve` (the default model on port 8000)
    - `deepinfer serve model.gguf --port 9000 --alias gpt-4o-mini`
    - `deepinfer serve Qwen/Qwen3-0.6B --kv-cache-memory 2GiB --max-model-len 8192`
    """
    from deepinfer.cli.model_source import find_model
    from deepinfer.cli.serving import ServeOptions, run_foreground
    from deepinfer.cli.sizes import parse_size

    config = make_engine_config(
        find_model(model),
        max_model_len=max_model_len,
        device=device,
        dtype=dtype,
        cpu_backend=cpu_backend,
        cpu_activations=cpu_activations,
        threads=threads,
        kv_cache_memory=kv_cache_memory,
        kv_cache_dtype=kv_cache_dtype,
        block_size=block_size,
        prefix_caching=prefix_caching,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_waiting=max_num_waiting,
        target_itl_ms=target_itl_ms,
        target_ttft_ms=target_ttft_ms,
        speculation=speculation,
        num_draft_tokens=num_draft_tokens,
        overlap_scheduling=overlap_scheduling,
        served_model_name=served_model_name,
    )
    given: dict[str, object] = {
        "model_aliases": tuple(alias or ()),
        "max_body_bytes": parse_size(max_body_size, "--max-body-size"),
        "drain_timeout_seconds": drain_timeout,
        "max_concurrent_requests": max_num_seqs + max_num_waiting,
    }
    if api_key:
        given["api_keys"] = tuple(api_key)
    if cors_origin:
        given["cors_origins"] = tuple(cors_origin)
    run_foreground(config, ServeOptions(host=host, port=port, log_level=log_level, log_json=log_json, settings=given))
