"""Text to ids and back for the offline engine, by the codec. The only module of this package that imports it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepinfer.config import ModelConfig
from deepinfer.errors import ConfigError, RequestError
from deepinfer.loader.checkpoint import Checkpoint, TokenizerSpec
from deepinfer.structured import Vocabulary

if TYPE_CHECKING:
    import recipe_rs


class TextCodec:
    """Tokenizer and chat template of one model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Raises ConfigError when the tokenizer or template cannot be used."""
        import recipe_rs

        self._recipe_rs = recipe_rs
        spec = checkpoint.tokenizer
        try:
            self.tokenizer = _make_tokenizer(spec)
            self.encoding = None
            if checkpoint.chat_template is not None:
                self.encoding = recipe_rs.ChatTemplateEncoding(
                    checkpoint.chat_template, self.tokenizer, bos_token=spec.bos_token, eos_token=spec.eos_token
                )
        except recipe_rs.RecipeError as error:
            raise ConfigError(f"the tokenizer or chat template of {checkpoint.path} cannot be used: {error}") from error
        bos_token_id = self.tokenizer.token_to_id(spec.bos_token) if spec.add_bos_token else None
        self._bos_ids = [] if bos_token_id is None else [bos_token_id]

    def encode(self, text: str) -> list[int]:
        """Ids of a prompt written by the program itself: spellings of special tokens are those tokens. Starts with the
        begin-of-sequence token where the model wants one and the text does not."""
        token_ids: list[int] = self.tokenizer.encode(text)
        if self._bos_ids and token_ids[:1] != self._bos_ids:
            return [*self._bos_ids, *token_ids]
        return token_ids

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> memoryview:
        """Ids (format "I") of a conversation; spellings of special tokens inside messages stay plain text.

        Raises:
            RequestError: the model has no chat template, or it refuses the conversation.
        """
        if self.encoding is None:
            raise RequestError("this model has no chat template; use generate() with a prompt", param="messages")
        try:
            rendered = self.encoding.render(
                json.dumps(list(messages)),
                tools_json=None if tools is None else json.dumps(list(tools)),
                kwargs_json=None if template_kwargs is None else json.dumps(dict(template_kwargs)),
            )
            return memoryview(self.encoding.encode(rendered)).cast("I")
        except (self._recipe_rs.RecipeError, TypeError) as error:
            raise RequestError(f"the conversation cannot be rendered: {error}", param="messages") from error

    def make_vocabulary(self, config: ModelConfig) -> Vocabulary:
        """The tokens for structured output."""
        tokenizer = self.tokenizer
        return Vocabulary(
            tokens=[tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)],
            special_token_ids=sorted(tokenizer.special_token_ids),
            eos_token_ids=config.eos_token_ids,
            encode=lambda text: list(memoryview(tokenizer.encode_plain(text)).cast("I")),
            size=max(config.vocab_size, tokenizer.vocab_size),
        )

    def make_stream(self, *, stop: Sequence[str], skip_special_tokens: bool) -> recipe_rs.TextStream:
        """Incremental decoder of one output."""
        return self._recipe_rs.TextStream(self.tokenizer, stop=list(stop), skip_special_tokens=skip_special_tokens)


def _make_tokenizer(spec: TokenizerSpec) -> recipe_rs.Tokenizer:
    import recipe_rs

    if spec.tokenizer_json is not None:
        return recipe_rs.Tokenizer.from_file(spec.tokenizer_json)
    vocabulary = spec.gguf_vocabulary
    return recipe_rs.Tokenizer.from_gguf_vocabulary(
        model=vocabulary["model"],
        pre=vocabulary["pre"],
        tokens=vocabulary["tokens"],
        merges=vocabulary["merges"],
        scores=vocabulary["scores"] or None,
        token_types=vocabulary["token_types"],
        add_space_prefix=vocabulary["add_space_prefix"],
    )
