"""The intended differences from the official codec in compat mode: each named rule matches exactly its own kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

EXTRA_FIELDS = [
    *["top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "logit_bias", "ignore_eos"],
    *["stop_token_ids", "min_tokens", "bad_words", "include_stop_str_in_output", "skip_special_tokens", "priority"],
    *["cache_salt", "return_token_ids", "prompt_logprobs", "echo", "chat_template_kwargs", "max_completion_tokens"],
]


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    stage: str
    """`ok`, `constructor` or `convert`."""
    detail: Any
    """The converted request as plain data, or the message of the refusal."""

    @property
    def is_accepted(self) -> bool:
        return self.stage == "ok"


@dataclass(frozen=True)
class Rule:
    """One intended difference."""

    name: str
    reason: str
    matches: Callable[[Outcome, Outcome], bool]


def _refused_by_us_only(theirs: Outcome, ours: Outcome) -> bool:
    return theirs.is_accepted and not ours.is_accepted


RULES = [
    Rule(
        "F25",
        "sampling fields that the official codec ignores are checked",
        lambda theirs, ours: (
            _refused_by_us_only(theirs, ours) and any(ours.detail.startswith(name) for name in EXTRA_FIELDS)
        ),
    ),
    Rule(
        "type by number",
        "a type is a name; the official codec also takes its number in a list",
        lambda theirs, ours: (
            _refused_by_us_only(theirs, ours) and re.search(r"\.type: expected .*, got -?\d", ours.detail) is not None
        ),
    ),
    Rule(
        "F24",
        "lists are not read as the positional fields of an object",
        lambda theirs, ours: _refused_by_us_only(theirs, ours) and "expected an object, got a list" in ours.detail,
    ),
]


def rule_of(theirs: Outcome, ours: Outcome) -> Rule | None:
    """The one rule that explains a difference; None if there is no difference.

    Raises AssertionError if none or several match.
    """
    if theirs.is_accepted == ours.is_accepted and (not theirs.is_accepted or theirs.detail == ours.detail):
        return None
    matching = [rule for rule in RULES if rule.matches(theirs, ours)]
    names = [rule.name for rule in matching]
    assert len(matching) == 1, f"rules {names} for official {theirs} and ours {ours}"
    return matching[0]
