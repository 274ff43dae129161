"""Text in, ids out, and back: what the routes ask of the codec, and its implementation by `recipe_rs`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from deepinfer_api.errors import ApiError, invalid_request

OFF_LOOP_CHARACTERS = 16_384
"""Prompts longer than this are encoded in a worker thread, so that the event loop goes on writing tokens."""


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as text and as ids; `text` is empty where a client sent ids and nobody asked for the text."""

    text: str
    token_ids: Sequence[int]


class TextDelta(Protocol):
    """What one push gave.

    Attributes:
        text: text that became final by it.
        stop: the stop string that was found, or None.
        num_tokens: tokens taken so far; after a stop, up to and including the one that completed it.
        num_released_tokens: tokens so far, oldest first, whose text is out completely.
    """

    @property
    def text(self) -> str: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def num_released_tokens(self) -> int: ...


class TextStream(Protocol):
    """Ids of one output in order -> text that never holds half a character nor any part of a stop string."""

    def push(self, token_ids: Sequence[int], /) -> TextDelta: ...
    def finish(self) -> TextDelta: ...


class Codec(Protocol):
    """Everything the routes need to know about text."""

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        ...

    @property
    def has_chat_template(self) -> bool:
        """Whether chat is possible."""
        ...

    def encode_text(self, text: str, *, add_special_tokens: bool = True) -> Sequence[int]:
        """Plain text; spellings of special tokens stay text. `add_special_tokens` puts the model's own start token."""
        ...

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        template_kwargs: Mapping[str, Any],
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> EncodedPrompt:
        """Render a conversation by the model's template and encode it.

        Raises:
            ApiError: 400, when the template refuses the conversation.
        """
        ...

    def new_text_stream(
        self, *, stop: Sequence[str], skip_special_tokens: bool, include_stop_str_in_output: bool
    ) -> TextStream:
        """A decoder for one output."""
        ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Text of ids; bytes that are no UTF-8 become U+FFFD."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes one id stands for; a special token gives its spelling."""
        ...


async def encode_off_loop(codec: Codec, text: str) -> EncodedPrompt:
    """Encode a completion prompt, in a thread when it is long."""
    if len(text) < OFF_LOOP_CHARACTERS:
        return EncodedPrompt(text, codec.encode_text(text))
    return EncodedPrompt(text, await asyncio.to_thread(codec.encode_text, text))


class RecipeCodec:
    """The codec wheel behind `Codec`.

    Args:
        tokenizer: a `recipe_rs.Tokenizer`.
        chat: a `recipe_rs.ChatTemplateEncoding`, or None for a model without a template.
        vocab_size: number of rows of the model's embedding.
        bos_token_id: start token of a plain completion prompt, or None.
    """

    def __init__(self, tokenizer: Any, chat: Any | None, *, vocab_size: int, bos_token_id: int | None = None) -> None:
        import recipe_rs

        self._tokenizer = tokenizer
        self._chat = chat
        self._text_stream = recipe_rs.TextStream
        self._error: type[Exception] = recipe_rs.RecipeError
        self._bos_token_id = bos_token_id
        self.vocab_size = vocab_size

    @property
    def has_chat_template(self) -> bool:
        """See `Codec.has_chat_template`."""
        return self._chat is not None

    def encode_text(self, text: str, *, add_special_tokens: bool = True) -> Sequence[int]:
        """See `Codec.encode_text`."""
        token_ids = memoryview(self._tokenizer.encode_plain(text)).cast("I")
        if add_special_tokens and self._bos_token_id is not None:
            return [self._bos_token_id, *token_ids]
        return token_ids

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        template_kwargs: Mapping[str, Any],
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> EncodedPrompt:
        """See `Codec.encode_chat`."""
        if self._chat is None:
            raise ApiError(
                400, "the model has no chat template; use /v1/completions", param="messages", code="no_chat_template"
            )
        try:
            rendered = self._chat.render(
                json.dumps(messages),
                kwargs_json=json.dumps(template_kwargs) if template_kwargs else None,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
            )
            return EncodedPrompt(rendered.prompt, memoryview(self._chat.encode(rendered)).cast("I"))
        except self._error as error:
            index = getattr(error, "message_index", None)
            param = "messages" if index is None else f"messages[{index}]"
            raise invalid_request(str(error), param, code="template_error") from error

    def new_text_stream(
        self, *, stop: Sequence[str], skip_special_tokens: bool, include_stop_str_in_output: bool
    ) -> TextStream:
        """See `Codec.new_text_stream`."""
        stream: TextStream = self._text_stream(
            self._tokenizer,
            stop=list(stop),
            skip_special_tokens=skip_special_tokens,
            include_stop_str_in_output=include_stop_str_in_output,
        )
        return stream

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """See `Codec.decode`."""
        text: str = self._tokenizer.decode(list(token_ids), skip_special_tokens=skip_special_tokens)
        return text

    def token_bytes(self, token_id: int) -> bytes:
        """See `Codec.token_bytes`."""
        data: bytes = self._tokenizer.token_bytes(token_id)
        return data
