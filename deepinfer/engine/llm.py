"""Offline inference: `LLM(model).generate(prompts)`. Steps run in the caller's thread."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig, SpeculativeConfig
from deepinfer.engine.progress import ProgressBar
from deepinfer.engine.request_output import RequestOutput, TextStream, add_to_output
from deepinfer.errors import ConfigError, RequestError
from deepinfer.request import Request
from deepinfer.sampling.random import compute_key
from deepinfer.sampling_params import SamplingParams
from deepinfer.structured import CompiledGrammar, GrammarCompiler, GrammarSpec

if TYPE_CHECKING:
    from deepinfer.engine.core import EngineCore
    from deepinfer.engine.text import TextCodec

__all__ = ["LLM", "RequestOutput"]

logger = logging.getLogger(__name__)

Conversation = Sequence[Mapping[str, Any]]


class LLM:
    """A model to call from a program.

    Args:
        model: GGUF file, Hugging Face directory or id; without it the default model, fetched once if need be.
        tokenizer, trust_remote_code, expert_parallel_size, revision, tokenizer_revision, gpu_memory_utilization:
            accepted for compatibility; values other than the defaults are refused.
        seed: requests without a seed of their own get one derived from it and their number, so that a program
            gives the same texts each time it runs.
        decode_sequence: whether `generate` and `chat` return texts; else `RequestOutput` objects.
        max_model_len, max_num_seqs, max_num_batched_tokens, block_size, kv_cache_memory_bytes, enable_prefix_caching,
            dtype, device, cpu_backend, cpu_activations, num_threads: see `EngineConfig`.
        speculation, num_draft_tokens: see `SpeculativeConfig`.

    Raises:
        ConfigError, WeightLoadError: one sentence that says what to do.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        tokenizer: str | Path | None = None,
        trust_remote_code: bool = False,
        expert_parallel_size: int = 1,
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        seed: int = 0,
        gpu_memory_utilization: float = 0.9,
        decode_sequence: bool = True,
        *,
        max_model_len: int | None = None,
        max_num_seqs: int = 64,
        max_num_batched_tokens: int = 512,
        block_size: int = 64,
        kv_cache_memory_bytes: int | None = None,
        enable_prefix_caching: bool = True,
        dtype: str = "auto",
        device: str = "auto",
        cpu_backend: str = "auto",
        cpu_activations: str = "exact",
        num_threads: int | None = None,
        speculation: str = "off",
        num_draft_tokens: int | None = None,
    ) -> None:
        for name, value, only in (
            ("tokenizer", tokenizer, (None, model)),
            ("trust_remote_code", trust_remote_code, (False,)),
            ("expert_parallel_size", expert_parallel_size, (1,)),
            ("revision", revision, (None,)),
            ("tokenizer_revision", tokenizer_revision, (None,)),
            ("gpu_memory_utilization", gpu_memory_utilization, (0.9,)),
        ):
            if value not in only:
                raise ConfigError(f"{name}={value!r} is not supported; leave it at {only[0]!r}")
        from deepinfer.engine.build import build_engine
        from deepinfer.engine.text import TextCodec
        from deepinfer.loader.default_model import find_or_fetch_default_model
        from deepinfer.loader.open import resolve_model

        config = EngineConfig(
            model=find_or_fetch_default_model(report=logger.warning) if model is None else resolve_model(str(model)),
            dtype=dtype,
            device=device,
            cpu_backend=cpu_backend,
            cpu_activations=cpu_activations,
            max_model_len=max_model_len,
            num_threads=num_threads,
            cache=CacheConfig(
                block_size=block_size,
                kv_cache_memory_bytes=kv_cache_memory_bytes,
                enable_prefix_caching=enable_prefix_caching,
            ),
            scheduler=SchedulerConfig(
                max_num_seqs=max_num_seqs,
                max_num_batched_tokens=max_num_batched_tokens,
                target_itl_seconds=None,  # a batch is there to get done
            ),
            speculative=SpeculativeConfig(proposer=speculation, num_draft_tokens=num_draft_tokens),
        )
        built = build_engine(config)
        self._set_up(built.core, TextCodec(built.checkpoint), seed=seed, decode_sequence=decode_sequence)

    @classmethod
    def from_core(cls, core: EngineCore, codec: TextCodec, *, seed: int = 0, decode_sequence: bool = True) -> Self:
        """Wrap an engine that exists already."""
        llm = cls.__new__(cls)
        llm._set_up(core, codec, seed=seed, decode_sequence=decode_sequence)
        return llm

    def _set_up(self, core: EngineCore, codec: TextCodec, *, seed: int, decode_sequence: bool) -> None:
        self._core = core
        self._codec = codec
        self._grammars = GrammarCompiler(lambda: codec.make_vocabulary(core.executor.model_config))
        self._seed = seed
        self._decode_sequence = decode_sequence
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # one caller at a time runs steps

    def get_tokenizer(self) -> Any:
        """The codec's tokenizer: `encode`, `decode`."""
        return self._codec.tokenizer

    def generate(
        self,
        prompts: str | Sequence[str] | None = None,
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        prompt_token_ids: Sequence[Sequence[int]] | None = None,
        use_tqdm: bool = True,
        multi_modal_data: None = None,
        *,
        stop: Sequence[str] = (),
        skip_special_tokens: bool = False,
        grammar: GrammarSpec | None = None,
    ) -> list[str] | list[RequestOutput]:
        """Complete prompts; results stand in the order of the prompts.

        Args:
            prompts: texts in which spellings of special tokens are those tokens; or give `prompt_token_ids`.
            sampling_params: one for all, or one for each prompt.
            use_tqdm: show progress on a terminal.
            stop: texts that end an output; they are not part of it.
            skip_special_tokens: leave special tokens, such as the one that ends the output, out of the text.
            grammar: a form that every output must have.

        Returns:
            Texts, or `RequestOutput` objects if `decode_sequence` is False; those carry the error of their prompt.

        Raises:
            RequestError: a prompt is invalid or failed, and texts were asked for.
        """
        if multi_modal_data is not None:
            raise RequestError("multi_modal_data is not supported by this model", param="multi_modal_data")
        if isinstance(prompts, str):
            prompts = [prompts]
        if (prompts is None) == (prompt_token_ids is None):
            raise RequestError("give either prompts or prompt_token_ids", param="prompts")
        items: list[tuple[str | None, Sequence[int] | memoryview]]
        if prompts is not None:
            items = [(text, self._codec.encode(text)) for text in prompts]
        else:
            items = [(None, token_ids) for token_ids in prompt_token_ids or ()]
        return self._complete(items, sampling_params, stop, skip_special_tokens, grammar, show_progress=use_tqdm)

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        stop: Sequence[str] = (),
        use_tqdm: bool = False,
        grammar: GrammarSpec | None = None,
    ) -> list[str] | list[RequestOutput]:
        """Answer one conversation or several, rendered by the model's chat template; see `generate`."""
        conversations = [messages] if messages and isinstance(messages[0], Mapping) else messages
        items = [
            (None, self._codec.encode_chat(conversation, tools=tools, template_kwargs=chat_template_kwargs))  # type: ignore[arg-type]
            for conversation in conversations
        ]
        return self._complete(items, sampling_params, stop, True, grammar, show_progress=use_tqdm)

    def stream(
        self,
        prompt: str | Sequence[int] | Conversation,
        sampling_params: SamplingParams | None = None,
        *,
        stop: Sequence[str] = (),
        skip_special_tokens: bool = True,
    ) -> Iterator[str]:
        """Complete a prompt (text, ids, or messages) and yield its text piece by piece; closing it aborts the request.

        Raises:
            RequestError: the prompt is invalid or failed.
        """
        prompt_token_ids: Sequence[int] | memoryview
        if isinstance(prompt, str):
            prompt_token_ids = self._codec.encode(prompt)
        elif prompt and isinstance(prompt[0], Mapping):
            prompt_token_ids = self._codec.encode_chat(prompt)  # type: ignore[arg-type]
        else:
            prompt_token_ids = prompt  # type: ignore[assignment]
        with self._lock:
            result, request = self._make(None, prompt_token_ids, sampling_params or SamplingParams())
            if request is not None:
                text_stream = self._codec.make_stream(stop=stop, skip_special_tokens=skip_special_tokens)
                try:
                    yield from (text for _, text in self._run([(result, request, text_stream)]) if text)
                finally:
                    self._core.abort_request(result.request_id)
            if result.error is not None:
                raise result.error

    def close(self) -> None:
        """Release the model."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _complete(
        self,
        items: Sequence[tuple[str | None, Sequence[int] | memoryview]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None,
        stop: Sequence[str],
        skip_special_tokens: bool,
        grammar: GrammarSpec | None,
        *,
        show_progress: bool,
    ) -> list[str] | list[RequestOutput]:
        params = _params_for_each(sampling_params, len(items))
        constraint = None if grammar is None else self._grammars.compile(grammar)
        with self._lock:
            made = [
                self._make(text, token_ids, own, constraint)
                for (text, token_ids), own in zip(items, params, strict=True)
            ]
            results = [result for result, _ in made]
            if self._decode_sequence:
                _raise_first_error(results)
            runnable = [
                (result, request, self._codec.make_stream(stop=stop, skip_special_tokens=skip_special_tokens))
                for result, request in made
                if request is not None
            ]
            with ProgressBar(len(runnable), is_enabled=show_progress) as progress:
                for result, _ in self._run(runnable):
                    if result.is_finished:
                        progress.advance()
        if not self._decode_sequence:
            return results
        _raise_first_error(results)
        return [result.text for result in results]

    def _make(
        self,
        text: str | None,
        token_ids: Sequence[int] | memoryview,
        params: SamplingParams,
        constraint: CompiledGrammar | None = None,
    ) -> tuple[RequestOutput, Request | None]:
        """A result to fill, and the request that fills it unless it is invalid."""
        number = next(self._numbers)
        if params.seed is None:
            params = replace(params, seed=compute_key(self._seed, number))
        result = RequestOutput(request_id=f"offline-{number}", prompt=text, prompt_token_ids=array("I"))
        try:
            request = self._core.rules.make_request(
                result.request_id, token_ids, params, arrival_time=time.monotonic(), constraint=constraint
            )
        except RequestError as error:
            result.fail(error)
            return result, None
        result.prompt_token_ids = request.prompt_token_ids
        return result, request

    def _run(self, items: Sequence[_Running]) -> Iterator[tuple[RequestOutput, str]]:
        """Step until all have ended; yields a result each time it grows, with its new text."""
        core = self._core
        running = {result.request_id: (result, text_stream) for result, _, text_stream in items}
        for result, request, _ in items:
            try:
                core.add_request(request)
            except RequestError as error:
                result.fail(error)
                del running[result.request_id]
                yield result, ""
        try:
            while running:
                for output in core.step().outputs:
                    if output.request_id not in running:
                        continue  # ended before by a stop string, or abandoned by an earlier caller
                    result, text_stream = running[output.request_id]
                    text = add_to_output(result, output, text_stream)
                    if result.is_finished:
                        del running[output.request_id]
                        core.abort_request(output.request_id)
                    yield result, text
        finally:
            for request_id in running:
                core.abort_request(request_id)


_Running = tuple[RequestOutput, Request, TextStream]


def _params_for_each(
    sampling_params: SamplingParams | Sequence[SamplingParams] | None, count: int
) -> Sequence[SamplingParams]:
    if sampling_params is None:
        sampling_params = SamplingParams()
    if isinstance(sampling_params, SamplingParams):
        return [sampling_params] * count
    if len(sampling_params) != count:
        raise RequestError(
            f"there are {count} prompts, but {len(sampling_params)} sampling_params; give one, or one for each prompt",
            param="sampling_params",
        )
    return sampling_params


def _raise_first_error(results: Sequence[RequestOutput]) -> None:
    for index, result in enumerate(results):
        if result.error is not None:
            raise RequestError(f"prompt {index}: {result.error}", param=result.error.param) from result.error
