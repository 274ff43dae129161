"""Text in, ids out, and back: what the routes ask of a codec."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

OFF_LOOP_CHARACTERS = 16_384
"""Prompts longer than this are encoded in a worker thread, so that the event loop goes on writing tokens."""

# What the template writes around a message, roughly: many empty messages are a long prompt too.
_MESSAGE_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class ThinkingTokens:
    """The two tokens around a model's thinking."""

    start_id: int
    end_id: int


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

    @property
    def thinking(self) -> ThinkingTokens | None:
        """The tokens around the model's thinking; None where it has none."""
        ...

    def encode_prompt(self, text: str, *, with_start_token: bool, with_special_tokens: bool) -> Sequence[int]:
        """Ids of a prompt that a program wrote.

        Args:
            text: the prompt.
            with_start_token: put the model's start token first where the model wants one and the text has none.
            with_special_tokens: spellings of special tokens are those tokens; else they are plain text.
        """
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


async def encode_chat_off_loop(
    codec: Codec,
    messages: Sequence[Mapping[str, Any]],
    *,
    template_kwargs: Mapping[str, Any],
    add_generation_prompt: bool,
    continue_final_message: bool,
) -> EncodedPrompt:
    """Render and encode a conversation, in a thread when it is long.

    Raises:
        ApiError: see `Codec.encode_chat`.
    """

    def encode() -> EncodedPrompt:
        return codec.encode_chat(
            messages,
            template_kwargs=template_kwargs,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
        )

    size = sum(_MESSAGE_CHARACTERS + len(message["content"]) for message in messages)
    return encode() if size < OFF_LOOP_CHARACTERS else await asyncio.to_thread(encode)


async def encode_off_loop(
    codec: Codec, text: str, *, with_start_token: bool = True, with_special_tokens: bool = True
) -> EncodedPrompt:
    """Encode a completion prompt, in a thread when it is long."""

    def encode() -> EncodedPrompt:
        token_ids = codec.encode_prompt(
            text, with_start_token=with_start_token, with_special_tokens=with_special_tokens
        )
        return EncodedPrompt(text, token_ids)

    return encode() if len(text) < OFF_LOOP_CHARACTERS else await asyncio.to_thread(encode)
