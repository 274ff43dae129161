"""The compiled part of `recipe_rs`."""

import os
from collections.abc import Sequence
from typing import Any, final

__version__: str

class RecipeError(Exception):
    """Base of the codec's errors."""

class TokenizerError(RecipeError, ValueError):
    """A vocabulary file or an encode call is at fault; `offset` is where in the input, in bytes."""

    offset: int | None

class RenderError(RecipeError, ValueError):
    """A conversation cannot be rendered; `message_index` is which message is at fault."""

    message_index: int | None

class StreamError(RecipeError, RuntimeError):
    """An output stream was used after its end, or its input is inconsistent."""

    state: str | None

class ConversionError(RecipeError, ValueError):
    """A request body is invalid or asks for something unsupported; `param` is the path of the field."""

    status_code: int | None
    body: Any
    param: str | None
    code: str | None
    message: str | None

@final
class Tokenizer:
    """Text to token ids and back."""

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """Read a Hugging Face `tokenizer.json`; raises TokenizerError when it is none or not supported."""

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Build a tokenizer from the text of a Hugging Face `tokenizer.json`."""

    @staticmethod
    def from_gguf_vocabulary(
        *,
        model: str,
        pre: str,
        tokens: Sequence[str],
        merges: Sequence[str],
        scores: Sequence[float] | None,
        token_types: Sequence[int],
        add_space_prefix: bool = False,
    ) -> Tokenizer:
        """Build a tokenizer from the `tokenizer.ggml.*` keys of a GGUF file."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; spellings of added tokens are those tokens."""

    def encode_plain(self, text: str, *, num_threads: int | None = None) -> bytes:
        """Return the ids of `text` as native u32; spellings of added tokens are plain text."""

    def encode_ranges(
        self, text: str, special_ranges: Sequence[tuple[int, int]], *, num_threads: int | None = None
    ) -> bytes:
        """Return the ids of `text` as native u32; exactly `special_ranges`, in code points, are added tokens."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of `ids`; bytes that are no UTF-8 become U+FFFD."""

    def token_bytes(self, id: int) -> bytes:
        """Return the bytes that `id` contributes to a decoded text."""

    def token_to_id(self, token: str) -> int | None:
        """Return the id of the token that the vocabulary file spells `token`."""

    def id_to_token(self, id: int) -> str | None:
        """Return the spelling of `id` in the vocabulary file."""

    @property
    def vocab_size(self) -> int:
        """Number of ids: one more than the largest."""

    @property
    def special_token_ids(self) -> frozenset[int]:
        """Ids of the added tokens that `skip_special_tokens` leaves out."""

    @property
    def added_tokens(self) -> dict[str, int]:
        """Ids of the added tokens by their spelling."""

@final
class GrowingPrompt:
    """A prompt that text is appended to; only its tail is encoded again."""

    def __new__(cls, tokenizer: Tokenizer) -> GrowingPrompt: ...
    def append(self, text: str, special_ranges: Sequence[tuple[int, int]] = []) -> int:
        """Append text, with added tokens at `special_ranges` (code points); return how many ids stayed."""

    def token_ids(self) -> bytes:
        """Return the ids of the text so far as native u32."""

    def __len__(self) -> int: ...

@final
class TextDelta:
    """What a push added to the text."""

    @property
    def text(self) -> str:
        """Text that is certain now: whole characters, nothing that may belong to a stop string."""

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text."""

    @property
    def num_tokens(self) -> int:
        """Tokens taken so far; after a stop, up to and including the token that completed it."""

    @property
    def num_released_tokens(self) -> int:
        """Tokens whose text has been returned completely so far."""

    def __eq__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> bool: ...

@final
class TextStream:
    """Incremental decoder of one request, up to a stop string."""

    def __new__(
        cls,
        tokenizer: Tokenizer,
        *,
        stop: Sequence[str] = [],
        skip_special_tokens: bool = True,
        include_stop_str_in_output: bool = False,
    ) -> TextStream: ...
    def push(self, token_ids: Sequence[int]) -> TextDelta:
        """Add token ids; those behind the one that completes a stop string are not looked at."""

    def finish(self) -> TextDelta:
        """End the text and return what was held back."""

@final
class ChatTemplateEncoding:
    """The prompt encoding of a model that brings its own chat template."""

    def __new__(
        cls, template: str, tokenizer: Tokenizer, *, bos_token: str = "", eos_token: str = ""
    ) -> ChatTemplateEncoding: ...
    def render(
        self,
        messages_json: str,
        *,
        tools_json: str | None = None,
        kwargs_json: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> RenderedPrompt:
        """Render a conversation; messages, tools and further variables of the template are JSON texts."""

    def encode(self, rendered: RenderedPrompt) -> bytes:
        """Return the ids of a rendered prompt as native u32."""

@final
class RenderedPrompt:
    """A prompt, the places of its special tokens, and its images."""

    @property
    def prompt(self) -> str:
        """The text."""

    @property
    def special_ranges(self) -> list[tuple[int, int]]:
        """Ranges of `prompt`, in code points, that are special tokens; everything else is plain text."""
