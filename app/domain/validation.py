"""Pydantic's errors in our words: which field is wrong, and why."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from app.domain.errors import UNKNOWN_FIELD, FieldError
from app.domain.suggestion import did_you_mean


def field_error(found: Mapping[str, Any], body: Any, model: Any = None) -> FieldError:
    """One of pydantic's errors; its location names union branches too, which the body knows nothing of.

    Args:
        found: The error as pydantic lists it, its location beginning with the part of the request, such as ``"body"``.
        body: The body as it was sent.
        model: The type that it was validated as, if the known name nearest to an unknown one is to be suggested.
    """
    location = list(found["loc"])
    place = location.pop(0) if location else "body"
    tokens = [] if place == "body" else [str(place)]
    value: Any = body if place == "body" else None
    for n, token in enumerate(location):
        is_member = (isinstance(value, dict) and token in value) or (
            isinstance(value, list) and isinstance(token, int) and token < len(value)
        )
        is_missing_member = found["type"] == "missing" and n == len(location) - 1
        if is_member or is_missing_member or place != "body":
            tokens.append(str(token).replace("~", "~0").replace("/", "~1"))
        if is_member:
            value = value[token]
    pointer = "/" + "/".join(tokens) if tokens else ""
    return FieldError(pointer, message(found) + _suggestion(found, model))


_PLAIN_MESSAGES: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": UNKNOWN_FIELD,
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "string_type": "must be text",
    "string_unicode": "must not contain lone surrogates",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""For pydantic's messages that speak of Python's types, by the error's type."""


def _suggestion(found: Mapping[str, Any], model: Any) -> str:
    """The known field whose name is nearest to an unknown one's; empty if none is near."""
    if found["type"] != "extra_forbidden" or model is None:
        return ""
    *place, name = [token for token in found["loc"][1:] if isinstance(token, str)]
    models = list(_models_in(model))
    for token in place:
        fields = [known.model_fields[token] for known in models if token in known.model_fields]
        models = [inner for each in fields for inner in _models_in(each.annotation)] or models
    known = {field for each in models for field in each.model_fields}
    return did_you_mean(name, known)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation consists of, such as both of ``list[A | B]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def message(found: Mapping[str, Any]) -> str:
    """Return one of pydantic's errors as a clause whose subject is the field."""
    plain = _PLAIN_MESSAGES.get(found["type"])
    if plain is not None:
        return plain
    said = str(found["msg"]).removeprefix("Value error, ")
    if found["type"] in {"too_long", "too_short"} and isinstance(found.get("input"), str):
        said = re.sub(r"\bitem(?=s?\b)", "character", said)
    # A list that is too long is cut before it is checked, so its length is not known here.
    said = re.sub(r" after validation, not \w+( \w+)?$", "", said)
    if isinstance(found.get("input"), str):
        said = re.sub(r"item(?=s?$)", "character", said)
    return re.sub(r"^[A-Z][a-z]+ should ", "must ", said)
