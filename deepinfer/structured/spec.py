"""What an output must look like: pure data."""

from __future__ import annotations

from dataclasses import dataclass

from deepinfer.errors import RequestError

KINDS = ("json_schema", "json_object", "regex", "grammar", "choice")


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
    """

    kind: str
    source: str = ""
    choices: tuple[str, ...] = ()
    start_after_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise RequestError when the parts do not fit together."""
        if self.kind not in KINDS:
            raise RequestError(
                f"the kind of a grammar must be one of {', '.join(KINDS)}, but is {self.kind!r}", param="kind"
            )
        if self.kind == "choice" and not self.choices:
            raise RequestError("choice must list at least one text", param="choice")
        if self.kind not in ("choice", "json_object") and not self.source:
            raise RequestError(f"{self.kind} is empty", param=self.kind)
