"""From body bytes to a checked request; every refusal names the field's path, its value, and the rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from deepinfer_api.errors import ApiError, invalid_request

MAX_SHOWN_CHARACTERS = 60


class RequestBody(BaseModel):
    """Base of all bodies: strict types, unknown fields kept apart, explicit nulls equal to absence."""

    model_config = ConfigDict(strict=True, extra="allow")


Body = TypeVar("Body", bound=RequestBody)

_RULES = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "int_parsing_size": "must be an integer of at most 64 bits",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "greater_than": "must be > {gt}",
    "greater_than_equal": "must be >= {ge}",
    "less_than": "must be < {lt}",
    "less_than_equal": "must be <= {le}",
    "literal_error": "must be one of {expected}",
    "too_short": "must hold at least {min_length} element(s)",
    "too_long": "must hold at most {max_length} element(s)",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} character(s)",
}


def parse_body(kind: type[Body], data: bytes) -> Body:
    """Read and check a request body.

    Raises:
        ApiError: 400 that names the field at fault.
    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise _refusal(error) from None


def ignored_fields(body: RequestBody, without_effect: Sequence[str] = ()) -> list[str]:
    """Names of given fields that the server does not act on, in the order of the body.

    Args:
        body: the checked body.
        without_effect: declared fields that were understood but change nothing.
    """
    unknown = [name for name, value in (body.model_extra or {}).items() if value is not None]
    known = [name for name in without_effect if getattr(body, name) is not None]
    return unknown + known


def show(value: object) -> str:
    """A short, printable form of a client's value."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."


def field_path(location: Sequence[str | int]) -> str:
    """`("messages", 2, "content")` -> `messages[2].content`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _refusal(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False)[0]
    kind, path = first["type"], field_path(first["loc"])
    context: Mapping[str, Any] = first.get("ctx") or {}
    if kind == "json_invalid":
        return invalid_request(f"the body is not valid JSON: {context.get('error', first['msg'])}", None,
                               code="invalid_json")  # fmt: skip
    if not path:
        return invalid_request("the body must be a JSON object", None, code="invalid_json")
    if kind == "missing":
        return invalid_request(f"{path} is required", path, code="missing_required_parameter")
    rule = _RULES.get(kind)
    text = rule.format_map(context) if rule else first["msg"][0].lower() + first["msg"][1:]
    return invalid_request(f"{path} {text}, but is {show(first['input'])}", path)
