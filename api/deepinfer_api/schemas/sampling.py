"""Fields about sampling that chat and completions share, and their conversion to the engine's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from deepinfer.errors import InvalidSamplingParamsError
from deepinfer.sampling_params import MAX_SEED, SamplingParams
from deepinfer_api.codec import Codec
from deepinfer_api.errors import invalid_request, unsupported
from deepinfer_api.schemas.structured import RequiredForm, required_form
from deepinfer_api.schemas.validation import RequestBody, show

MAX_STOP_STRINGS = 16
MAX_TOP_LOGPROBS = 20
MAX_CHOICES = 128
MAX_METADATA_PAIRS = 16
MAX_BAD_WORDS = 128
MAX_BAD_WORD_CHARACTERS = 256
MAX_STOP_TOKEN_IDS = 1024
MAX_SALT_CHARACTERS = 1024

CACHE_CLASSES = {"in_memory": "normal", "in-memory": "normal", "24h": "long", "none": "short"}
"""Values of `prompt_cache_retention`; the last one is ours: nobody will ask for this prompt again."""


REPLACED_FIELDS = {f"guided_{name}": f"structured_outputs.{name}" for name in ("json", "regex", "grammar", "choice")}
"""Older spellings whose silent loss would give an output of the wrong form."""

BadWord = Annotated[str, Field(min_length=1, max_length=MAX_BAD_WORD_CHARACTERS)]


class StreamOptions(RequestBody):
    """`stream_options` of a request."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class SamplingBody(RequestBody):
    """Common fields. Ranges that the engine checks are not repeated here."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: Any = None
    seed: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None
    min_tokens: int | None = None
    stop_token_ids: Annotated[list[int], Field(max_length=MAX_STOP_TOKEN_IDS)] | None = None
    bad_words: Annotated[list[BadWord], Field(max_length=MAX_BAD_WORDS)] | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    priority: int | None = None
    cache_salt: Annotated[str, Field(max_length=MAX_SALT_CHARACTERS)] | None = None
    cache_prompt: bool | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h", "none"] | None = None
    return_token_ids: bool | None = None
    prompt_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    response_format: Any = None
    structured_outputs: Any = None
    metadata: dict[str, str] | None = None
    user: Any = None

    def check_common(self) -> None:
        """Raise ApiError (400) for what is not served and for combinations that make no sense."""
        for name, replacement in REPLACED_FIELDS.items():
            if (self.model_extra or {}).get(name) is not None:
                raise unsupported(name, f"{name} is not served; send {replacement} instead")
        if self.stream_options is not None and not self.stream:
            raise invalid_request("stream_options needs stream to be true", "stream_options")
        if self.metadata is not None:
            if len(self.metadata) > MAX_METADATA_PAIRS:
                raise invalid_request(
                    f"metadata must hold at most {MAX_METADATA_PAIRS} pairs, but has {len(self.metadata)}", "metadata"
                )
            for key, value in self.metadata.items():
                if len(key) > 64 or len(value) > 512:
                    raise invalid_request(
                        f"metadata keys have at most 64 and values at most 512 characters; {show(key)} does not fit",
                        f"metadata.{key[:64]}",
                    )

    @property
    def given_max_tokens(self) -> int | None:
        """Bound on output tokens as sent; the newer name wins."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def max_tokens_name(self) -> str:
        """Which of the two names the bound came under."""
        return "max_tokens" if self.max_completion_tokens is None else "max_completion_tokens"

    @property
    def num_choices(self) -> int:
        """Outputs asked for, for each prompt."""
        return self.n or 1

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return bool(self.stream_options and (self.stream_options.include_usage or self.wants_continuous_usage))

    @property
    def wants_continuous_usage(self) -> bool:
        """Whether each chunk carries the usage so far."""
        return bool(self.stream_options and self.stream_options.continuous_usage_stats)

    def required_form(self) -> RequiredForm | None:
        """The form that each output must have, or None.

        Raises:
            ApiError: 400 that names the field.
        """
        return required_form(self.response_format, self.structured_outputs)

    def stop_strings(self) -> list[str]:
        """The stop strings.

        Raises:
            ApiError: 400, when there are too many, or one is empty or no string.
        """
        stop = [self.stop] if isinstance(self.stop, str) else self.stop
        if stop is None:
            return []
        if not isinstance(stop, list):
            raise invalid_request(f"stop must be a string or a list of strings, but is {show(stop)}", "stop")
        if len(stop) > MAX_STOP_STRINGS:
            raise invalid_request(f"stop must hold at most {MAX_STOP_STRINGS} strings, but has {len(stop)}", "stop")
        for index, text in enumerate(stop):
            path = "stop" if isinstance(self.stop, str) else f"stop[{index}]"
            if not isinstance(text, str):
                raise invalid_request(f"{path} must be a string, but is {show(text)}", path)
            if not text:
                raise invalid_request(f"{path} must not be empty", path)
        return stop

    def sampling_params(
        self,
        codec: Codec,
        *,
        max_tokens: int | None,
        logprobs: int | None,
        prompt_logprobs: int | None,
        defaults: Mapping[str, float | int],
    ) -> SamplingParams:
        """The engine's parameters.

        Args:
            codec: encodes `bad_words` and bounds token ids.
            max_tokens: bound on output tokens; None is what the context leaves.
            logprobs: alternatives to report for each output token, or None.
            prompt_logprobs: the same for the prompt.
            defaults: values for fields the request does not name.

        Raises:
            ApiError: 400 that names the field.
        """
        given: dict[str, Any] = dict(defaults)
        for name in (
            "temperature", "top_p", "frequency_penalty", "presence_penalty", "top_k", "min_p", "repetition_penalty",
            "ignore_eos", "min_tokens", "seed", "priority", "cache_salt",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                given[name] = value
        if self.cache_prompt is not None:
            given["use_prefix_cache"] = self.cache_prompt
        if self.prompt_cache_retention is not None:
            given["cache_class"] = CACHE_CLASSES[self.prompt_cache_retention]
        try:
            return SamplingParams(
                **given,
                max_tokens=max_tokens,
                logprobs=logprobs,
                prompt_logprobs=prompt_logprobs,
                logit_bias=self._logit_bias(codec.vocab_size),
                stop_token_ids=tuple(self.stop_token_ids or ()),
                bad_words_token_ids=self._bad_words(codec),
            )
        except InvalidSamplingParamsError as error:
            message, param = str(error), error.param
            if param == "max_tokens":
                param = self.max_tokens_name
                message = message.replace("max_tokens", param, 1)
            raise invalid_request(message, param) from error

    def _logit_bias(self, vocab_size: int) -> dict[int, float]:
        bias: dict[int, float] = {}
        for key, value in (self.logit_bias or {}).items():
            path = f"logit_bias.{key[:20]}"
            if not (key.isascii() and key.isdigit() and len(key) < 11) or int(key) >= vocab_size:
                raise invalid_request(
                    f"logit_bias is keyed by token ids from 0 to {vocab_size - 1}, but has {show(key)}", path
                )
            bias[int(key)] = value
        return bias

    def _bad_words(self, codec: Codec) -> tuple[tuple[int, ...], ...]:
        words: set[tuple[int, ...]] = set()
        for word in self.bad_words or ():
            # A word may stand at the start of the text or after a space; byte-level vocabularies spell these apart.
            for spelling in (word, " " + word.lstrip()):
                words.add(tuple(codec.encode_prompt(spelling, with_start_token=False, with_special_tokens=False)))
        return tuple(sorted(words))


def seed_of_choice(seed: int, index: int) -> int:
    """Choice 0 has the request's own seed; the others follow it, so that n outputs differ but can be repeated."""
    return (seed + index) & MAX_SEED


def check_token_ids(token_ids: Sequence[int], vocab_size: int, path: str) -> None:
    """Raise ApiError (400) for an id outside the vocabulary."""
    # Looking for the one at fault is slow for a million ids, which is for a client to pay and not for the others.
    if not token_ids or (min(token_ids) >= 0 and max(token_ids) < vocab_size):
        return
    for index, token_id in enumerate(token_ids):
        if not 0 <= token_id < vocab_size:
            raise invalid_request(
                f"{path}[{index}] must be a token id from 0 to {vocab_size - 1}, but is {token_id}", f"{path}[{index}]"
            )
