"""The body of a plain completion."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deepinfer_api.errors import invalid_request, unsupported
from deepinfer_api.schemas.sampling import MAX_TOP_LOGPROBS, SamplingBody
from deepinfer_api.schemas.validation import show

DEFAULT_MAX_TOKENS = 16
MAX_PROMPTS = 1024

WITHOUT_EFFECT = ("user", "metadata")
"""Declared fields that are accepted and change nothing."""


class CompletionBody(SamplingBody):
    """POST /v1/completions.

    A text prompt is taken as written by a program: spellings of special tokens are those tokens, unless
    `split_special_tokens` is true; the model's start token is put first, unless `add_special_tokens` is false.
    """

    prompt: Any = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    suffix: Any = None
    best_of: int | None = None
    add_special_tokens: bool | None = None
    split_special_tokens: bool | None = None

    def check(self) -> None:
        """Raise ApiError (400) for what is not served, by the field's name."""
        self.check_common()
        if self.suffix:
            raise unsupported("suffix", "suffix is not served: the model has no fill-in-the-middle form")
        if self.best_of is not None and self.best_of != self.num_choices:
            raise unsupported("best_of", f"best_of is {self.best_of}, but only best_of equal to n ({self.num_choices}) "
                              "is served")  # fmt: skip
        if self.max_output_tokens == 0 and not self.echo:
            name = self.max_tokens_name
            raise invalid_request(f"{name} must be >= 1 unless echo is true, but is 0", name)

    @property
    def max_output_tokens(self) -> int:
        """Bound on output tokens; the newer name wins."""
        given = self.given_max_tokens
        return DEFAULT_MAX_TOKENS if given is None else given

    def prompts(self) -> list[str | list[int]]:
        """One entry for each prompt, as text or as ids.

        Raises:
            ApiError: 400 that names the entry at fault.
        """
        prompt = self.prompt
        if prompt is None:
            raise invalid_request("prompt is required", "prompt", code="missing_required_parameter")
        if isinstance(prompt, str):
            return [prompt]
        if not isinstance(prompt, list):
            raise invalid_request(
                f"prompt must be a string, a list of strings, a list of token ids, or a list of lists of token ids, "
                f"but is {show(prompt)}",
                "prompt",
            )
        if not prompt:
            raise invalid_request("prompt must not be an empty list", "prompt")
        if isinstance(prompt[0], int):
            return [_token_ids(prompt, "prompt")]
        if len(prompt) > MAX_PROMPTS:
            raise invalid_request(f"prompt must hold at most {MAX_PROMPTS} prompts, but has {len(prompt)}", "prompt")
        prompts: list[str | list[int]] = []
        for index, entry in enumerate(prompt):
            path = f"prompt[{index}]"
            if isinstance(entry, str):
                prompts.append(entry)
            elif isinstance(entry, list) and entry:
                prompts.append(_token_ids(entry, path))
            else:
                raise invalid_request(f"{path} must be a string or a list of token ids, but is {show(entry)}", path)
        return prompts


def _token_ids(values: list[Any], path: str) -> list[int]:
    if set(map(type, values)) == {int}:
        return values
    for index, value in enumerate(values):
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid_request(f"{path}[{index}] must be a token id, but is {show(value)}", f"{path}[{index}]")
    return values
