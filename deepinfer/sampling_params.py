"""How the next token of a request is chosen. Knows ids only: stop strings are matched on text by the codec."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from deepinfer.errors import InvalidSamplingParamsError

MAX_SEED = 2**64 - 1
MAX_LOGPROBS = 1000
LOGPROBS_MODES = ("raw", "processed")
CACHE_CLASSES = ("short", "normal", "long")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Options of one request; validated at construction, never edited afterwards.

    Order of application to the float32 logits of a position: penalties, logit_bias, bad_words, the required form, and
    min_tokens, unless the form is complete (the bans are minus infinity), then temperature, top_k, top_p, min_p.
    `temperature` 0 is argmax, the lower id on ties.

    Attributes:
        temperature: >= 0; 0 is greedy.
        top_k: keep the k most likely tokens; -1 or 0 keeps all.
        top_p: in (0, 1]; keep tokens whose exclusive cumulative probability is < top_p, at least one.
        min_p: in [0, 1]; drop tokens less likely than min_p times the most likely one.
        repetition_penalty: in [0.01, 100]; over prompt and output, 1 is off.
        frequency_penalty: in [-2, 2]; per occurrence in the output.
        presence_penalty: in [-2, 2]; once for each token in the output.
        logit_bias: token id -> bias in [-100, 100].
        seed: in [0, 2**64); None lets the engine choose one and report it.
        max_tokens: >= 1 output tokens; None means as many as the context holds. 0 only with `prompt_logprobs`.
        min_tokens: end-of-sequence and stop tokens are impossible before this many output tokens.
        ignore_eos: go on after the model's end-of-sequence tokens.
        stop_token_ids: further ids that end the output; the stop id itself is reported as `stop_token_id`.
        bad_words_token_ids: id sequences that must not be produced.
        logprobs: number of most likely tokens to report for each output token; None reports nothing, 0 reports only
            the chosen token.
        prompt_logprobs: the same for the prompt's tokens; always of the raw logits.
        logprobs_mode: "raw" (of the model's logits) or "processed" (after everything above; what was cut has none).
        golden_token_ids: tokens that the output must begin with, for teacher forcing; -1 leaves a position free.
        max_thinking_tokens: output tokens after which `thinking_end_token_id` is forced if it has not appeared.
        thinking_end_token_id: the token that ends the model's thinking.
        thinking_start_token_id: the budget counts only if the output begins with this token; None: the prompt has
            begun the thinking.
        priority: lower goes first; equal priorities are served in order of arrival.
        use_prefix_cache: whether the request takes from the prefix cache and leaves its blocks in it.
        cache_class: "short", "normal" or "long": how long the cache prefers to keep the request's blocks.
        cache_salt: requests share cached prefixes only with requests of the same salt.
    """

    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int | None = 16
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    bad_words_token_ids: tuple[tuple[int, ...], ...] = ()
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprobs_mode: str = "raw"
    golden_token_ids: tuple[int, ...] = ()
    max_thinking_tokens: int | None = None
    thinking_end_token_id: int | None = None
    thinking_start_token_id: int | None = None
    priority: int = 0
    use_prefix_cache: bool = True
    cache_class: str = "normal"
    cache_salt: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidSamplingParamsError when a value has the wrong type or is out of range."""
        _number("temperature", self.temperature, 0.0, math.inf, "a number >= 0")
        _number("top_p", self.top_p, 0.0, 1.0, "in (0, 1]", exclusive_low=True)
        _number("min_p", self.min_p, 0.0, 1.0, "in [0, 1]")
        _number("repetition_penalty", self.repetition_penalty, 0.01, 100.0, "in [0.01, 100]")
        _number("frequency_penalty", self.frequency_penalty, -2.0, 2.0, "in [-2, 2]")
        _number("presence_penalty", self.presence_penalty, -2.0, 2.0, "in [-2, 2]")
        _integer("top_k", self.top_k, -1, 2**31 - 1, "-1 or 0 (all), or >= 1")
        _integer("min_tokens", self.min_tokens, 0, 2**31 - 1, ">= 0")
        _integer("priority", self.priority, -(2**31), 2**31 - 1, "a 32-bit integer")
        if self.seed is not None:
            _integer("seed", self.seed, 0, MAX_SEED, "in [0, 2**64)")
        if self.max_tokens is not None:
            low = 0 if self.prompt_logprobs is not None else 1
            _integer("max_tokens", self.max_tokens, low, 2**31 - 1, f">= {low}")
            if self.min_tokens > self.max_tokens:
                raise InvalidSamplingParamsError(
                    f"min_tokens is {self.min_tokens}, which exceeds max_tokens = {self.max_tokens}", param="min_tokens"
                )
        for name, value in (("logprobs", self.logprobs), ("prompt_logprobs", self.prompt_logprobs)):
            if value is not None:
                _integer(name, value, 0, MAX_LOGPROBS, f"in [0, {MAX_LOGPROBS}]")
        for token_id, bias in self.logit_bias.items():
            _integer("logit_bias", token_id, 0, 2**31 - 1, "keyed by token ids >= 0")
            _number("logit_bias", bias, -100.0, 100.0, "in [-100, 100]")
        for token_id in self.stop_token_ids:
            _integer("stop_token_ids", token_id, 0, 2**31 - 1, "a list of token ids >= 0")
        if self.logprobs_mode not in LOGPROBS_MODES:
            raise InvalidSamplingParamsError(
                f"logprobs_mode must be one of {', '.join(LOGPROBS_MODES)}, but is {self.logprobs_mode!r}",
                param="logprobs_mode",
            )
        if self.cache_class not in CACHE_CLASSES:
            raise InvalidSamplingParamsError(
                f"cache_class must be one of {', '.join(CACHE_CLASSES)}, but is {self.cache_class!r}",
                param="cache_class",
            )
        for token_id in self.golden_token_ids:
            _integer("golden_token_ids", token_id, -1, 2**31 - 1, "a list of token ids, or -1 for a free position")
        if self.max_thinking_tokens is not None:
            _integer("max_thinking_tokens", self.max_thinking_tokens, 0, 2**31 - 1, ">= 0")
            _integer("thinking_end_token_id", self.thinking_end_token_id, 0, 2**31 - 1, "a token id >= 0")
            if self.thinking_start_token_id is not None:
                _integer("thinking_start_token_id", self.thinking_start_token_id, 0, 2**31 - 1, "a token id >= 0")
        for word in self.bad_words_token_ids:
            if not word:
                raise InvalidSamplingParamsError("bad_words holds an empty word; remove it", param="bad_words")

    @property
    def is_greedy(self) -> bool:
        """Whether the choice is argmax."""
        return self.temperature == 0.0

    @property
    def has_penalties(self) -> bool:
        """Whether the token history changes the logits."""
        return self.repetition_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0

    @property
    def needs_full_logits(self) -> bool:
        """Whether anything but argmax of the raw logits is asked for."""
        return bool(
            not self.is_greedy
            or self.has_penalties
            or self.logit_bias
            or self.min_tokens
            or self.bad_words_token_ids
            or self.golden_token_ids
            or self.max_thinking_tokens is not None
            or self.logprobs is not None
            or self.prompt_logprobs is not None
        )


def _number(name: str, value: object, low: float, high: float, rule: str, *, exclusive_low: bool = False) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not (low < value if exclusive_low else low <= value) or not value <= high:  # type: ignore[operator]
        raise InvalidSamplingParamsError(f"{name} must be {rule}, but is {value!r}", param=name)


def _integer(name: str, value: object, low: int, high: int, rule: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        if isinstance(value, int) and value > high:
            rule = f"at most {high}"
        raise InvalidSamplingParamsError(f"{name} must be {rule}, but is {value!r}", param=name)
