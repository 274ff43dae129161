"""The codec wheel `recipe_rs` behind the `Codec` protocol. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import recipe_rs
from deepinfer.engine.text import TextCodec
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer_api.codec import EncodedPrompt, TextStream, ThinkingTokens
from deepinfer_api.errors import ApiError, invalid_request

THINKING_START: Final = "<think>"
THINKING_END: Final = "</think>"


class RecipeCodec:
    """The codec wheel behind `Codec`.

    Args:
        tokenizer: text to ids and back.
        chat: the model's template, or None where it has none.
        vocab_size: number of rows of the model's embedding.
        bos_token_id: start token of a plain completion prompt, or None.
    """

    def __init__(
        self,
        tokenizer: recipe_rs.Tokenizer,
        chat: recipe_rs.ChatTemplateEncoding | None,
        *,
        vocab_size: int,
        bos_token_id: int | None = None,
    ) -> None:

        self._tokenizer = tokenizer
        self._chat = chat
        self._bos_token_id = bos_token_id
        self.vocab_size = vocab_size
        self.thinking = None if chat is None else _find_thinking(tokenizer)

    @property
    def has_chat_template(self) -> bool:
        """See `Codec.has_chat_template`."""
        return self._chat is not None

    def encode_prompt(self, text: str, *, with_start_token: bool, with_special_tokens: bool) -> Sequence[int]:
        """See `Codec.encode_prompt`."""
        token_ids: Sequence[int]
        if with_special_tokens:
            token_ids = self._tokenizer.encode(text)
        else:
            token_ids = memoryview(self._tokenizer.encode_plain(text)).cast("I")
        start = self._bos_token_id
        if with_start_token and start is not None and (not len(token_ids) or token_ids[0] != start):
            return [start, *token_ids]
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
                _to_json(messages, "messages"),
                kwargs_json=_to_json(template_kwargs, "chat_template_kwargs") if template_kwargs else None,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
            )
            return EncodedPrompt(rendered.prompt, memoryview(self._chat.encode(rendered)).cast("I"))
        except recipe_rs.RecipeError as error:
            index = getattr(error, "message_index", None)
            param = "messages" if index is None else f"messages[{index}]"
            raise invalid_request(str(error), param, code="template_error") from error

    def new_text_stream(
        self, *, stop: Sequence[str], skip_special_tokens: bool, include_stop_str_in_output: bool
    ) -> TextStream:
        """See `Codec.new_text_stream`."""
        stream: TextStream = recipe_rs.TextStream(
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
        # An embedding may have more rows than the vocabulary has tokens; those stand for nothing.
        if token_id >= self._tokenizer.vocab_size:
            return b""
        data: bytes = self._tokenizer.token_bytes(token_id)
        return data


def _find_thinking(tokenizer: recipe_rs.Tokenizer) -> ThinkingTokens | None:
    """The markers, where the vocabulary has each of them as one token that no merge of other text can give."""
    added = tokenizer.added_tokens
    start_id, end_id = added.get(THINKING_START), added.get(THINKING_END)
    return None if start_id is None or end_id is None else ThinkingTokens(start_id, end_id)


def _to_json(value: Any, param: str) -> str:
    """JSON for the template; a body may hold NaN and infinities in places that nothing else checks.

    Raises:
        ApiError: 400 that names the field.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise invalid_request(f"{param} holds a number that is not finite", param) from None


def make_codec(checkpoint: Checkpoint) -> RecipeCodec:
    """The codec of a model file.

    Raises:
        ConfigError: its tokenizer or template is not covered.
    """
    text = TextCodec(checkpoint)
    spec = checkpoint.tokenizer
    return RecipeCodec(
        text.tokenizer,
        text.encoding,
        vocab_size=checkpoint.config.vocab_size,
        bos_token_id=text.tokenizer.token_to_id(spec.bos_token) if spec.add_bos_token else None,
    )
