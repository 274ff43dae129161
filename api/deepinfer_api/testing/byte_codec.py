"""The real codec over a vocabulary of single bytes: every text is ids that a test can write down."""

from __future__ import annotations

from typing import Final

import recipe_rs
from deepinfer.structured import Vocabulary
from deepinfer_api.recipe_codec import THINKING_END, THINKING_START, RecipeCodec

START_TOKEN: Final = "<|im_start|>"
END_TOKEN: Final = "<|im_end|>"
EOS_TOKEN: Final = "<|endoftext|>"
START_ID: Final = 256
END_ID: Final = 257
EOS_ID: Final = 258
VOCAB_SIZE: Final = 259
THINKING_START_ID: Final = 259
THINKING_END_ID: Final = 260

CHATML_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_CONTROL: Final = 3
_NORMAL: Final = 1
_USER_DEFINED: Final = 4


def byte_ids(text: str) -> list[int]:
    """Ids of a text: its UTF-8 bytes."""
    return list(text.encode())


def make_byte_codec(
    *, chat_template: str | None = CHATML_TEMPLATE, bos_token_id: int | None = None, can_think: bool = False
) -> RecipeCodec:
    """A codec whose token b is the byte b; ids 256 to 258 are special tokens. One that can think has the ids 259 and
    260 around its thinking."""
    tokens = [_byte_character(byte) for byte in range(256)] + [START_TOKEN, END_TOKEN, EOS_TOKEN]
    types = [_NORMAL] * 256 + [_CONTROL] * 3
    if can_think:
        tokens += [THINKING_START, THINKING_END]
        types += [_USER_DEFINED] * 2
    tokenizer = recipe_rs.Tokenizer.from_gguf_vocabulary(
        model="gpt2",
        pre="gpt-2",
        tokens=tokens,
        merges=[],
        scores=None,
        token_types=types,
    )
    chat = None
    if chat_template is not None:
        chat = recipe_rs.ChatTemplateEncoding(chat_template, tokenizer, bos_token=START_TOKEN, eos_token=END_TOKEN)
    return RecipeCodec(tokenizer, chat, vocab_size=len(tokens), bos_token_id=bos_token_id)


def make_byte_vocabulary(*, can_think: bool = False) -> Vocabulary:
    """The same tokens for structured output; an output ends with `EOS_ID`."""
    markers = (THINKING_START, THINKING_END) if can_think else ()
    specials = [token.encode() for token in (START_TOKEN, END_TOKEN, EOS_TOKEN, *markers)]
    return Vocabulary(
        tokens=[*(bytes([byte]) for byte in range(256)), *specials],
        special_token_ids=range(START_ID, START_ID + len(specials)),
        eos_token_ids=[EOS_ID],
        encode=byte_ids,
        size=256 + len(specials),
    )


def _byte_character(byte: int) -> str:
    """The character that stands for a byte in byte-level vocabularies: itself if it is visible Latin-1, else one of
    those from U+0100 on, counted in byte order."""
    if _is_visible(byte):
        return chr(byte)
    return chr(0x100 + sum(not _is_visible(other) for other in range(byte)))


def _is_visible(byte: int) -> bool:
    return 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF
