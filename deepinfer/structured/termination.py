"""Whether some finite value satisfies a JSON schema that refers to itself."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from deepinfer.errors import GrammarError
from deepinfer.structured.json_schema import KIND, is_local, iterate_subschemas, resolve_reference


def check_termination(schema: dict[str, Any]) -> None:
    """Find out, from the leaves upwards, which schemas have a finite value: one needs all its required parts and one of
    its alternatives. Linear in the size of the schema.

    Raises:
        GrammarError: a reference leads nowhere, or every value would be endless.
    """
    num_missing: dict[int, int] = {}  # parts of a node that are not known to be finite
    dependents: defaultdict[int, list[int]] = defaultdict(list)
    finite: list[int] = []
    num_choices = 0

    def require(node: int, part: Any) -> None:
        if part is False:
            num_missing[node] += 1  # nothing ever settles it
        elif isinstance(part, dict):
            num_missing[node] += 1
            dependents[id(part)].append(node)

    for path, subschema in iterate_subschemas(schema):
        node = id(subschema)
        num_missing[node] = 0
        for part in _required_parts(schema, path, subschema):
            require(node, part)
        for keyword in ("anyOf", "oneOf"):
            options = subschema.get(keyword)
            if isinstance(options, list) and options:
                num_choices += 1
                choice = -num_choices
                num_missing[node] += 1
                num_missing[choice] = 1
                dependents[choice].append(node)
                for option in options:
                    if isinstance(option, dict):
                        dependents[id(option)].append(choice)
                    elif option is True:
                        num_missing[choice] = 0
                if not num_missing[choice]:
                    finite.append(choice)
        if not num_missing[node]:
            finite.append(node)
    settled = set(finite)
    while finite:
        for dependent in dependents[finite.pop()]:
            num_missing[dependent] -= 1
            if num_missing[dependent] <= 0 and dependent not in settled:
                settled.add(dependent)
                finite.append(dependent)
    if id(schema) in settled:
        return
    for path, subschema in iterate_subschemas(schema):
        reference = subschema.get("$ref")
        if is_local(reference) and id(resolve_reference(schema, reference)) not in settled:
            raise GrammarError(
                KIND, "makes every value endless: the schema requires itself; make a part of it optional",
                f"{path}.$ref",
            )  # fmt: skip


def _required_parts(root: dict[str, Any], path: str, schema: dict[str, Any]) -> list[Any]:
    """The schemas that each value of `schema` contains values of, or is a value of."""
    parts: list[Any] = []
    reference = schema.get("$ref")
    if is_local(reference):
        try:
            parts.append(resolve_reference(root, reference))
        except (LookupError, TypeError):
            raise GrammarError(KIND, f"is {reference!r}, but there is nothing at that place", f"{path}.$ref") from None
    elif reference is not None:
        raise GrammarError(
            KIND, f"is {str(reference)[:60]!r}, but only references into the schema itself (#/...) are supported",
            f"{path}.$ref",
        )  # fmt: skip
    every = schema.get("allOf")
    if isinstance(every, list):
        parts.extend(every)
    if schema.get("type") in ("object", ["object"]):
        properties = schema.get("properties")
        names = schema.get("required")
        if isinstance(properties, dict) and isinstance(names, list):
            wanted = {name for name in names if isinstance(name, str)}
            parts.extend(part for name, part in properties.items() if name in wanted)
    if schema.get("type") in ("array", ["array"]):
        least = schema.get("minItems")
        if isinstance(least, int) and least > 0:
            first = schema.get("prefixItems")
            first = first if isinstance(first, list) else []
            parts.extend(first[:least])
            if least > len(first):
                parts.append(schema.get("items"))
    return parts
