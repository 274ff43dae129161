"""Comparison of two event streams, and the named rules that explain where they may differ."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.parity.stream_cases import MARKER, Case, Outcome

_PARTIAL_CLOSE = tuple(f"</{MARKER}"[:length] for length in range(1, len(MARKER) + 2))


@dataclass
class Parts:
    """An event stream taken apart: arguments joined, their string pieces with the push they came in, the rest."""

    others: list[tuple[int, str]]
    arguments: dict[int, str]
    string_pieces: list[tuple[int, int, str]]


def argument_fragment(event: dict[str, Any]) -> tuple[int, str] | None:
    """Index of the call and the fragment, if the event carries nothing else."""
    for choice in event.get("choices", []):
        for call in choice["delta"].get("tool_calls", []):
            if "name" not in call["function"]:
                return call["index"], call["function"]["arguments"]
    if event.get("type") == "response.function_call_arguments.delta":
        return event["output_index"], event["delta"]
    delta = event.get("delta")
    if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        return event["index"], delta["partial_json"]
    return None


def take_apart(outcome: Outcome) -> Parts:
    parts = Parts([], {}, [])
    fragments = []
    for number, push in enumerate(outcome.pushes):
        if isinstance(push, str):
            parts.others.append((number, push))
            continue
        for text in push:
            found = argument_fragment(json.loads(text))
            if found is None:
                parts.others.append((number, re.sub(r'"sequence_number":\d+', "", text)))
                continue
            index, fragment = found
            joined = parts.arguments.get(index, "")
            fragments.append((number, index, len(joined), fragment))
            parts.arguments[index] = joined + fragment
    inside = {index: _inside_strings(joined) for index, joined in parts.arguments.items()}
    parts.string_pieces = [
        (number, index, fragment)
        for number, index, start, fragment in fragments
        if fragment and inside[index][start] and fragment != '"' and "§" not in fragment
    ]
    return parts


def _inside_strings(joined: str) -> list[bool]:
    """For each character: is it inside the string value of a member of the outermost object?"""
    result, depth, in_string, is_escaped, is_value = [], 0, False, False, False
    for char in joined:
        result.append(in_string and is_value and depth == 1)
        if in_string:
            in_string = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif depth == 1 and char in ":,":
            is_value = char == ":"
    return result


def merged_text(outcome: Outcome) -> list[str]:
    """The events without text and argument deltas, whose cuts and pushes may differ."""
    kept = []
    for push in outcome.pushes:
        for text in [push] if isinstance(push, str) else push:
            event = json.loads(text) if text.startswith("{") else {}
            delta = event.get("choices", [{}])[0].get("delta", {}) if event.get("choices") else {}
            is_text = event.get("type", "").endswith("delta") and event.get("type") != "message_delta"
            is_text |= bool(delta.get("content") or delta.get("reasoning_content")) and "role" not in delta
            is_text |= argument_fragment(event) is not None
            if not is_text:
                kept.append(re.sub(r'"sequence_number":\d+', "", text))
    return kept


@dataclass(frozen=True)
class Rule:
    """An intended difference: which cases it may touch, and what it explains there."""

    name: str
    applies: Callable[[Case], bool]
    explains: Callable[[Outcome, Outcome], bool]


def _same_but_cuts(reference: Outcome, own: Outcome) -> bool:
    return reference.accumulated == own.accumulated and take_apart(reference) == take_apart(own)


def _same_but_text_pushes(reference: Outcome, own: Outcome) -> bool:
    return reference.accumulated == own.accumulated and merged_text(reference) == merged_text(own)


def _same_without_cut_tag(reference: Outcome, own: Outcome) -> bool:
    """The official codec copies the beginning of a closing tag into a JSON value that the limit cut."""
    theirs, ours = take_apart(reference), take_apart(own)
    last = max(theirs.arguments, default=None)
    if last is None or last not in ours.arguments:
        return False
    extra = theirs.arguments.pop(last).removeprefix(ours.arguments.pop(last))
    return extra in _PARTIAL_CLOSE and theirs.arguments == ours.arguments


def _without_logprobs(outcome: Outcome) -> Outcome:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: None if key == "logprobs" else strip(inner) for key, inner in value.items()}
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    def stripped(text: str) -> str:
        return json.dumps(strip(json.loads(text)), ensure_ascii=False)

    pushes = [push if isinstance(push, str) else [stripped(text) for text in push] for push in outcome.pushes]
    return Outcome(pushes, stripped(outcome.accumulated))


def _same_without_logprobs(reference: Outcome, own: Outcome) -> bool:
    return _same_but_cuts(_without_logprobs(reference), _without_logprobs(own))


def _same_without_markers(reference: Outcome, own: Outcome) -> bool:
    counts = re.compile(r'"reasoning_tokens": \d+')
    theirs, ours = (counts.sub("", _without_logprobs(outcome).accumulated) for outcome in (reference, own))
    return theirs != ours and theirs.replace(MARKER, "") == ours


def _is_cut_in_json_value(case: Case) -> bool:
    return case.finish != "Stop" and case.text.endswith(_PARTIAL_CLOSE) and 'string="false">' in case.text


WELL_FORMED_RULES = (
    Rule("1.3 look-ahead: keys and JSON values are cut elsewhere", lambda case: MARKER in case.text, _same_but_cuts),
    Rule("F3: no part of a closing tag in a JSON value", _is_cut_in_json_value, _same_without_cut_tag),
    Rule(
        "E2: a possible stray closing tag waits",
        lambda case: case.chunk_kind == "text" and "</｜" in case.text.split(f"<{MARKER}")[0],
        lambda reference, own: _same_but_text_pushes(reference, own) and not _same_but_cuts(reference, own),
    ),
    Rule(
        "C11: log probabilities once per token",
        lambda case: case.num_top_logprobs is not None and case.options.get("parse_json_output", False),
        lambda reference, own: _same_without_logprobs(reference, own) and not _same_but_cuts(reference, own),
    ),
    Rule(
        "F6: no marker token in text when calls are not parsed",
        lambda case: case.chunk_kind == "ids" and not case.options.get("parse_tool_calls", True),
        _same_without_markers,
    ),
)


def explanations(case: Case, reference: Outcome, own: Outcome) -> list[str]:
    """Names of the rules that explain a difference; empty when nothing does."""
    return [rule.name for rule in WELL_FORMED_RULES if rule.applies(case) and rule.explains(reference, own)]
