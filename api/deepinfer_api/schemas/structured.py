"""`response_format` and `structured_outputs` -> the form an output must have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from deepinfer.errors import ConfigError, GrammarError, RequestError
from deepinfer.structured import GrammarSpec
from deepinfer_api.errors import ApiError, invalid_request, to_api_error, unsupported
from deepinfer_api.schemas.validation import show

FORMAT_TYPES: Final = ("text", "json_object", "json_schema", "regex")
FORMS: Final = ("json", "json_object", "regex", "grammar", "choice")


@dataclass(frozen=True, slots=True)
class RequiredForm:
    """A form and the field that asked for it.

    Attributes:
        spec: the form.
        field: path of the field that holds the schema, expression, grammar or list, for error messages.
    """

    spec: GrammarSpec
    field: str

    def refusal(self, error: Exception) -> ApiError:
        """The answer when this form cannot be compiled."""
        if isinstance(error, GrammarError):
            path = f"{self.field}{error.path}"
            return invalid_request(f"{path} {error.problem}", path)
        if isinstance(error, ConfigError):
            return unsupported(self.field, f"{self.field} cannot be served: {error}")
        return to_api_error(error)


def required_form(response_format: Any, structured_outputs: Any) -> RequiredForm | None:
    """The form that a body asks for, or None.

    Raises:
        ApiError: 400 that names the field.
    """
    form = None if response_format is None else _from_response_format(response_format)
    if structured_outputs is None:
        return form
    if form is not None:
        raise invalid_request(
            "structured_outputs and response_format exclude each other; send one of them", "structured_outputs"
        )
    return _from_structured_outputs(structured_outputs)


def _from_response_format(value: Any) -> RequiredForm | None:
    field = "response_format"
    if not isinstance(value, dict):
        raise invalid_request(f"{field} must be an object with a type, but is {show(value)}", field)
    match value.get("type"):
        case "text":
            return None
        case "json_object":
            if value.get("schema") is not None:
                return _json_form(value["schema"], f"{field}.schema")
            return _form(field, "json_object")
        case "json_schema":
            inner = value.get("json_schema")
            if not isinstance(inner, dict):
                raise _missing(f"{field}.json_schema", "an object with a schema", inner)
            name = inner.get("name")
            if name is not None and not isinstance(name, str):
                raise invalid_request(f"{field}.json_schema.name must be a string, but is {show(name)}",
                                      f"{field}.json_schema.name")  # fmt: skip
            return _json_form(inner.get("schema"), f"{field}.json_schema.schema")
        case "regex":
            return _text_form("regex", value.get("regex"), f"{field}.regex")
        case other:
            raise invalid_request(
                f"{field}.type must be one of {', '.join(FORMAT_TYPES)}, but is {show(other)}", f"{field}.type"
            )


def _from_structured_outputs(value: Any) -> RequiredForm | None:
    field = "structured_outputs"
    if not isinstance(value, dict):
        raise invalid_request(f"{field} must be an object, but is {show(value)}", field)
    given = {name: each for name, each in value.items() if each is not None and each is not False}
    for name in given:
        if name not in FORMS:
            raise unsupported(f"{field}.{name}", f"{field}.{name} is not served; give one of {', '.join(FORMS)}")
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "is empty"
        raise invalid_request(f"{field} must have exactly one of {', '.join(FORMS)}, but {found}", field)
    ((name, content),) = given.items()
    path = f"{field}.{name}"
    match name:
        case "json":
            return _json_form(content, path)
        case "json_object":
            if content is not True:
                raise invalid_request(f"{path} must be true or false, but is {show(content)}", path)
            return _form(path, "json_object")
        case "choice":
            return _choice_form(content, path)
        case _:
            return _text_form(name, content, path)


def _json_form(schema: Any, path: str) -> RequiredForm:
    if isinstance(schema, dict):
        return _form(path, "json_schema", source=json.dumps(schema))
    if isinstance(schema, str):
        return _form(path, "json_schema", source=schema)
    raise _missing(path, "a JSON schema", schema)


def _text_form(kind: str, text: Any, path: str) -> RequiredForm:
    if not isinstance(text, str):
        raise _missing(path, "a string", text)
    return _form(path, kind, source=text)


def _choice_form(choices: Any, path: str) -> RequiredForm:
    if not isinstance(choices, list):
        raise invalid_request(f"{path} must be a list of strings, but is {show(choices)}", path)
    for index, choice in enumerate(choices):
        if not isinstance(choice, str):
            raise invalid_request(f"{path}[{index}] must be a string, but is {show(choice)}", f"{path}[{index}]")
    return _form(path, "choice", choices=tuple(choices))


def _form(field: str, kind: str, *, source: str = "", choices: tuple[str, ...] = ()) -> RequiredForm:
    try:
        return RequiredForm(GrammarSpec(kind, source, choices), field)
    except GrammarError as error:
        raise invalid_request(f"{field}{error.path} {error.problem}", f"{field}{error.path}") from error
    except RequestError as error:
        raise invalid_request(str(error), field) from error


def _missing(path: str, wanted: str, value: Any) -> ApiError:
    if value is None:
        return invalid_request(f"{path} is required", path, code="missing_required_parameter")
    return invalid_request(f"{path} must be {wanted}, but is {show(value)}", path)
