"""The tokens of a model as the grammar library wants to see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id.

    Attributes:
        tokens: the bytes that each id adds to a text.
        special_token_ids: ids that are no text.
        eos_token_ids: ids that end an output; at least one.
        encode: ids of a text in which no special token is recognised.
        size: ids the model has logits for; at least len(tokens).
    """

    tokens: Sequence[bytes]
    special_token_ids: Sequence[int]
    eos_token_ids: Sequence[int]
    encode: Callable[[str], list[int]]
    size: int

    @property
    def eos_token_id(self) -> int:
        """The first of the ids that end an output."""
        return self.eos_token_ids[0]

    @property
    def bos_token_id(self) -> None:
        """Not needed: outputs never hold it."""
        return None

    def __call__(self, text: bytes) -> list[int]:
        """Ids of a text given as UTF-8."""
        return self.encode(text.decode())
