"""The codec wheel `recipe_rs` behind the `Codec` protocol. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import recipe_rs
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer_api.codec import EncodedPrompt, TextStream
from deepinfer_api.errors import ApiError, invalid_request


class RecipeCodec:
    """The codec wheel behind `Codec`.

    Args:
        tokenizer: a `recipe_rs.Tokenizer`.
        chat: a `recipe_rs.ChatTemplateEncoding`, or None for a model without a template.
        vocab_size: number of rows of the model's embedding.
        bos_token_id: start token of a plain completion prompt, or None.
    """

    def __init__(self, tokenizer: Any, chat: Any | None, *, vocab_size: int, bos_token_id: int | None = None) -> None:

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


def make_codec(checkpoint: Checkpoint) -> RecipeCodec:
    """The codec of a model file.

    Raises:
        WeightLoadError: its tokenizer or template is not covered.
    """
    raise RuntimeError(checkpoint)
