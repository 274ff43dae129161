"""What a JSON schema must be like to become a grammar; every refusal names the place. Knows no grammar library."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from deepinfer.errors import GrammarError
from deepinfer.structured.regex_size import MAX_EXPANSION, compute_expansion

KIND: Final = "json_schema"
MAX_CHARACTERS: Final = 262_144
MAX_DEPTH: Final = 100
"""Levels of JSON nesting."""
MAX_PROPERTIES: Final = 1_000
"""Of one object: the time to compile grows with their square."""
MAX_SUBSCHEMAS: Final = 5_000

UNSUPPORTED_KEYWORDS: Final = frozenset({
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
})  # fmt: skip
"""Keywords that restrict a value and that no grammar here expresses; ignoring one would give wrong outputs."""

_SCHEMA_KEYWORDS: Final = ("items", "additionalItems", "additionalProperties")
_SCHEMA_MAP_KEYWORDS: Final = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMA_LIST_KEYWORDS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def read_json_schema(text: str) -> dict[str, Any]:
    """Parse a schema and check size, depth, keywords, references and whether a value can end.

    Raises:
        GrammarError: it cannot be used; `path` leads to the place inside the schema.
    """
    if len(text) > MAX_CHARACTERS:
        raise GrammarError(KIND, f"has {len(text):,} characters, but at most {MAX_CHARACTERS:,} are taken")
    try:
        schema = json.loads(text)
    except RecursionError:
        raise GrammarError(KIND, f"is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise GrammarError(KIND, f"is not valid JSON: {error}") from None
    if not isinstance(schema, dict):
        raise GrammarError(KIND, f"must be a JSON object, but is {json.dumps(schema)[:40]}")
    _check_depth(schema)
    for index, (path, subschema) in enumerate(iterate_subschemas(schema)):
        if index >= MAX_SUBSCHEMAS:
            raise GrammarError(KIND, f"holds more than {MAX_SUBSCHEMAS:,} schemas in all; simplify it")
        _check_keywords(path, subschema)
    return schema


def iterate_subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and every schema inside it or referred to by it that is an object, each once, with its path; outer ones
    first."""
    stack: list[tuple[str, Any]] = [("", schema)]
    seen: set[int] = set()
    while stack:
        path, value = stack.pop()
        if not isinstance(value, dict) or id(value) in seen:
            continue
        seen.add(id(value))
        yield path, value
        inner: list[tuple[str, Any]] = []
        for keyword in _SCHEMA_KEYWORDS:
            inner.append((f"{path}.{keyword}", value.get(keyword)))
        for keyword in _SCHEMA_MAP_KEYWORDS:
            named = value.get(keyword)
            if isinstance(named, dict):
                inner.extend((f"{path}.{keyword}.{name}", each) for name, each in named.items())
        for keyword in (*_SCHEMA_LIST_KEYWORDS, "items"):
            listed = value.get(keyword)
            if isinstance(listed, list):
                inner.extend((f"{path}.{keyword}[{index}]", each) for index, each in enumerate(listed))
        reference = value.get("$ref")
        if is_local(reference):  # it may point to a place that is no schema by itself
            with contextlib.suppress(LookupError, TypeError):
                inner.append((reference[1:].replace("/", "."), resolve_reference(schema, reference)))
        stack.extend(reversed(inner))


def resolve_reference(root: dict[str, Any], reference: str) -> Any:
    """What a reference into the same document points at.

    Raises:
        LookupError: nothing is there.
    """
    value: Any = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        value = value[int(part)] if isinstance(value, list) and part.isdigit() else value[part]
    return value


def is_local(reference: object) -> TypeGuard[str]:
    """Whether a reference is a pointer into the same document."""
    return isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))


def _check_depth(schema: dict[str, Any]) -> None:
    level: list[Any] = [schema]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise GrammarError(KIND, f"is nested more than {MAX_DEPTH} levels deep")
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]


def _check_keywords(path: str, schema: dict[str, Any]) -> None:
    for keyword in schema:
        if keyword in UNSUPPORTED_KEYWORDS and not (keyword == "uniqueItems" and schema[keyword] is False):
            raise GrammarError(KIND, "is not supported: no grammar here expresses that keyword", f"{path}.{keyword}")
    properties = schema.get("properties")
    if isinstance(properties, dict) and len(properties) > MAX_PROPERTIES:
        raise GrammarError(
            KIND, f"has {len(properties):,} entries, but at most {MAX_PROPERTIES:,} are taken", f"{path}.properties"
        )
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and compute_expansion(pattern) > MAX_EXPANSION:
        raise GrammarError(KIND, f"repeats more than {MAX_EXPANSION:,} times; use smaller counts", f"{path}.pattern")
