"""What all requests and answers of the HTTP contract share, and what bounds the work on wrong requests.

Each noun's own are in its folder: models that are what a client sends and is answered, what the services work with, and what
the OpenAPI document and the client's types are made of.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from annotated_types import MaxLen
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticKnownError

Listed = TypeVar("Listed")

Completeness = Literal["full", "partial"]
"""Of a job's results."""

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
"""A number that is shown as it was given: 60 stays 60."""

UNKNOWN_TOLD = 20
"""Unknown fields of an object that are told, each as an error."""


def _name_the_kind(schema: JsonDict) -> None:
    """Says that ``object`` is always there, which whoever makes an answer need not give."""
    properties = schema["properties"]
    kind = properties.get("object") if isinstance(properties, dict) else None
    if isinstance(kind, dict) and kind.pop("default", None):
        required = schema.setdefault("required", [])
        assert isinstance(required, list)  # noqa: S101 - of a JSON schema
        required.append("object")


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_name_the_kind)

    @classmethod
    def of_row(cls, row: object) -> Self:
        """The answer that has a row's attributes."""
        return cls.model_validate(row, from_attributes=True)


class Page(Answer, Generic[Listed]):
    """Base of lists that are read page by page."""

    data: list[Listed]
    has_more: bool
    next_cursor: str | None


def check_storable(text: str) -> str:
    """The text, if it can be stored and sent; raises ``ValueError`` otherwise."""
    if "\x00" in text:
        raise ValueError("must not contain the character U+0000")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain lone surrogates") from None
    return text


Text = Annotated[str, AfterValidator(check_storable)]
"""A text that Postgres and a provider can take."""
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$", max_length=100)]
Line = Annotated[Text, Field(min_length=1, max_length=300, pattern=r"^[^\r\n]*$")]
Prose = Annotated[Text, Field(min_length=1, max_length=20_000, pattern=r"\S")]


class Body(BaseModel):
    """Base of all bodies: unknown fields and wrong types are errors.

    Each error takes microseconds to make, in which no other thread runs, and a body of 8 MB could have two million: so what is beyond
    the longest lists and objects that are taken is not looked at, but for the first of it, which says that they are too long.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_excess(cls, sent: Any) -> Any:
        fields = cls.model_fields
        if not isinstance(sent, dict) or (
            len(sent) <= UNKNOWN_TOLD and not any(map(_is_long, sent.values()))
        ):
            return sent
        unknown = islice((name for name in sent if name not in fields), UNKNOWN_TOLD)
        kept = [*(name for name in fields if name in sent), *unknown]
        return {name: _cut(sent[name], fields[name].metadata if name in fields else ()) for name in kept}


class ChangeBody(Body):
    """Base of bodies that change a thing: what is left out stays, so their schema names no defaults, which clients would send."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        for field in handler.resolve_ref_schema(schema)["properties"].values():
            field.pop("default", None)
        return schema


def _is_long(value: Any) -> bool:
    return isinstance(value, list | dict) and len(value) > UNKNOWN_TOLD


def _cut(value: Any, metadata: Iterable[Any]) -> Any:
    """A list or object without what is beyond one element too many."""
    most = next((each.max_length for each in metadata if isinstance(each, MaxLen)), None)
    if most is None or not isinstance(value, list | dict) or len(value) <= most:
        return value
    return value[: most + 1] if isinstance(value, list) else dict(islice(value.items(), most + 1))


def in_parts(size: int, most: int) -> WrapValidator:
    """Has a list or an object checked some elements at a time, until a part of it is wrong.

    Args:
        size: Elements of a part.
        most: The most that the whole may have.
    """
    return WrapValidator(partial(_in_parts, size, most))


def _in_parts(size: int, most: int, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    if not isinstance(value, list | dict) or len(value) <= size:
        return check(value)
    if len(value) > most:
        kind = "List" if isinstance(value, list) else "Dictionary"
        context = {"field_type": kind, "max_length": most, "actual_length": len(value)}
        raise PydanticKnownError("too_long", context)
    if isinstance(value, dict):
        members = iter(value.items())
        return {
            name: member
            for part in iter(lambda: dict(islice(members, size)), {})
            for name, member in check(part).items()
        }
    return [
        each
        for start in range(0, len(value), size)
        for each in _part_of_list(value[start : start + size], start, check)
    ]


def _part_of_list(part: list[Any], start: int, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(part)
    except ValidationError as error:
        raise ValidationError.from_exception_data(error.title, list(_moved(error, start))) from None


def _moved(error: ValidationError, by: int) -> Iterator[InitErrorDetails]:
    """A part's errors where they are in the whole list; what is wanted may be no list."""
    for each in error.errors(include_url=False):
        where = each["loc"]
        if where:
            assert isinstance(where[0], int)  # noqa: S101 - of a list
            where = (where[0] + by, *where[1:])
        found = InitErrorDetails(type=each["type"], loc=where, input=each["input"])
        if "ctx" in each:
            found["ctx"] = each["ctx"]
        yield found
