"""`deepinfer chat`: a conversation in the terminal, with a running server or a model of its own."""

from __future__ import annotations

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
from deepinfer.cli.engine_options import (
    CpuActivations,
    CpuBackend,
    Device,
    DType,
    KVCacheMemory,
    MaxModelLen,
    ModelArgument,
    Threads,
)
from deepinfer.cli.prompt_text import check_text
from deepinfer.errors import ConfigError

HELP = "/clear forgets the conversation, /retry answers again, /exit or Ctrl-D leaves, Ctrl-C stops an answer."


def chat(
    model: ModelArgument = None,
    url: Url = None,
    api_key: ApiKey = None,
    model_name: ModelName = None,
    system: System = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = DEFAULT_TEMPERATURE,
    top_p: TopP = DEFAULT_TOP_P,
    seed: Seed = None,
    show_timings: Annotated[bool, typer.Option("--timings", help="Show speed after each answer.")] = False,
    max_model_len: MaxModelLen = None,
    device: Device = "auto",
    dtype: DType = "auto",
    cpu_backend: CpuBackend = "auto",
    cpu_activations: CpuActivations = "exact",
    threads: Threads = None,
    kv_cache_memory: KVCacheMemory = None,
) -> None:
    """Chat in the terminal, streaming.

    With `--url` it talks to a running server; without, it loads the model itself.

    Examples:

    - `deepinfer chat`
    - `deepinfer chat --url http://127.0.0.1:8000 --system "Answer in one sentence."`
    """
    import asyncio

    from rich.console import Console

    from deepinfer.cli.target import open_target

    options = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "seed": seed}
    system = check_text(system, "--system") if system else None
    console = Console(highlight=False)
    with open_target(
        model,
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
        given = {key: value for key, value in options.items() if value is not None}
        conversation = Conversation(target, given, system)
        console.print(f"{target.model_name}. {HELP}", style="dim")
        while True:
            try:
                text = console.input("[bold green]> [/]").strip()
            except (EOFError, KeyboardInterrupt):
                console.print()
                return
            match text:
                case "":
                    continue
                case "/exit" | "/quit":
                    return
                case "/help":
                    console.print(HELP, style="dim")
                    continue
                case "/clear":
                    conversation.clear()
                    continue
                case "/retry":
                    if not conversation.drop_answer():
                        console.print("there is no answer yet", style="dim")
                        continue
                case _:
                    try:
                        conversation.ask(check_text(text, "the message"))
                    except ConfigError as error:
                        console.print(f"error: {error}", style="red", markup=False)
                        continue
            try:
                timings = asyncio.run(conversation.answer(console))
            except KeyboardInterrupt:
                console.print("\n(stopped)", style="dim")
                continue
            if show_timings and timings:
                console.print(_timings_line(timings), style="dim")


class Conversation:
    """The messages so far, and the next answer to them."""

    def __init__(self, target: Any, options: dict[str, Any], system: str | None) -> None:
        self._target = target
        self._options = options
        self._system = [{"role": "system", "content": system}] if system else []
        self.messages: list[dict[str, str]] = list(self._system)

    def clear(self) -> None:
        """Forget everything but the system message."""
        self.messages = list(self._system)

    def ask(self, text: str) -> None:
        """Add a message of the user; one without an answer is replaced."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages.pop()
        self.messages.append({"role": "user", "content": text})

    def drop_answer(self) -> bool:
        """Take the last answer back; returns whether there is a question to answer again."""
        if self.messages and self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        return bool(self.messages) and self.messages[-1]["role"] == "user"

    async def answer(self, console: Any) -> dict[str, Any] | None:
        """Print the answer as it comes and keep it, also the part before an interruption; returns its timings."""
        from deepinfer.cli.http_client import ServerError

        pieces: list[str] = []
        timings: dict[str, Any] | None = None
        is_thinking = False
        try:
            async for event in self._target.stream_chat(self.messages, self._options):
                for choice in event.data.get("choices") or ():
                    delta = choice.get("delta") or {}
                    thought, piece = delta.get("reasoning_content") or "", delta.get("content") or ""
                    if thought:
                        is_thinking = True
                        console.print(thought, end="", style="dim", markup=False, soft_wrap=True)
                    if piece:
                        if is_thinking:
                            is_thinking = False
                            console.print("\n")
                        pieces.append(piece)
                        console.print(piece, end="", markup=False, soft_wrap=True)
                timings = event.data.get("timings") or timings
            console.print()
        except ServerError as error:
            console.print(f"\nerror: {error}", style="red", markup=False)
        finally:
            if pieces:
                self.messages.append({"role": "assistant", "content": "".join(pieces)})
        return timings


def _timings_line(timings: dict[str, Any]) -> str:
    return (
        f"prompt {timings.get('prompt_n')} tokens in {timings.get('prompt_ms')} ms ({timings.get('cache_n')} cached), "
        f"answer {timings.get('predicted_n')} tokens at {timings.get('predicted_per_second')} tokens/s"
    )
