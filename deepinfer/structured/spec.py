"""What an output must look like: pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deepinfer.errors import GrammarError, RequestError

KINDS: Final = ("json_schema", "json_object", "regex", "grammar", "choice")
MAX_SOURCE_CHARACTERS: Final = 262_144
MAX_CHOICES: Final = 10_000


@dataclass(frozen=True, slots=True)
class GrammarSpec:
    """A form that an output must have.

    Attributes:
        kind: "json_schema" (source: the schema as JSON text), "json_object" (no source), "regex", "grammar" (Lark, or
            EBNF with "::="), or "choice" (see `choices`).
        source: text in the language of `kind`.
        choices: the texts to choose from.
        start_after_token_ids: the output is free until these tokens have appeared in a row, for example the end of
            the model's thinking; empty: from the first token on.
        opening_token_id: with `start_after_token_ids`, the output is free only if it begins with this token, else it
            has the form from its first token on. None: it is free in any case.
    """

    kind: str
    source: str = ""
    choices: tuple[str, ...] = ()
    start_after_token_ids: tuple[int, ...] = ()
    opening_token_id: int | None = None

    def __post_init__(self) -> None:
        """Raise RequestError when the parts do not fit together or are too large."""
        if self.kind not in KINDS:
            raise RequestError(
                f"the kind of a grammar must be one of {', '.join(KINDS)}, but is {self.kind!r}", param="kind"
            )
        if self.kind == "choice":
            self._check_choices()
        elif self.kind != "json_object" and not self.source:
            raise GrammarError(self.kind, "is empty")
        if self.num_characters > MAX_SOURCE_CHARACTERS:
            raise GrammarError(
                self.kind,
                f"has {self.num_characters:,} characters, but at most {MAX_SOURCE_CHARACTERS:,} are taken",
            )

    def _check_choices(self) -> None:
        if not self.choices:
            raise GrammarError("choice", "must list at least one text")
        if len(self.choices) > MAX_CHOICES:
            raise GrammarError("choice", f"lists {len(self.choices):,} texts, but at most {MAX_CHOICES:,} are taken")
        for index, text in enumerate(self.choices):
            if not text:
                raise GrammarError("choice", "must not be empty", f"[{index}]")

    @property
    def num_characters(self) -> int:
        """Size of the source text."""
        return len(self.source) + sum(map(len, self.choices))
