"""Names that are wrong in a job whose form is wrong too, so that whoever sent it mends everything at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from app.domain.errors import UNKNOWN_FIELD, FieldError, InvalidJobError, unescape_pointer
from app.domain.jobs.request import JobIn
from app.domain.jobs.resolve import resolve
from app.services.jobs.submit import SubmissionDependencies
from app.services.long_texts import on_a_thread

Json = Mapping[str, Any]


async def with_wrong_names(
    deps: SubmissionDependencies, tenant: str, model: type[JobIn], body: Any, wrong: Sequence[FieldError]
) -> list[FieldError]:
    """The errors in a job's form, followed by those in the names of the rest of it.

    Args:
        deps: What it takes.
        tenant: Whose names they are.
        model: What the body was validated as.
        body: The body as it was sent.
        wrong: What is wrong with its form.

    Returns:
        The same errors alone where the body can't be read without the wrong fields, such as one that is missing.
    """
    places = [_tokens(each.pointer) for each in wrong]
    wanted = await on_a_thread(tenant, lambda: _readable(model, body, places))
    if wanted is None:
        return list(wrong)
    own = await deps.of_tenant(tenant, wanted)
    try:
        await on_a_thread(tenant, lambda: resolve(wanted, own.catalog, own.max_planned_calls))
    except InvalidJobError as error:
        needed = [_tokens(each.pointer) for each in wrong if not each.message.startswith(UNKNOWN_FIELD)]
        if ["responses"] in needed:
            needed.append(["models"])  # which are only missing because the responses were left out
        return [*wrong, *(each for each in error.errors if not _concerns(_tokens(each.pointer), needed))]
    return list(wrong)


def _readable(model: type[JobIn], body: Any, places: Sequence[Sequence[str]]) -> JobIn | None:
    """The job without the members of objects that are wrong. Elements of lists stay: without one, the others move up."""
    for place in places:
        body = _without(body, place)
    try:
        return model.model_validate(body)
    except ValidationError:
        return None


def _without(value: Any, place: Sequence[str]) -> Any:
    if not place:
        return value
    first, *rest = place
    if isinstance(value, dict) and first in value:
        others = {name: each for name, each in value.items() if name != first}
        return others | {first: _without(value[first], rest)} if rest else others
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        n = int(first)
        return [*value[:n], _without(value[n], rest), *value[n + 1 :]]
    return value


def _concerns(place: Sequence[str], wrong: Sequence[Sequence[str]]) -> bool:
    """Whether an error is about what was left out, or about what contains it."""
    return any(all(a == b for a, b in zip(place, other, strict=False)) for other in wrong)


def _tokens(pointer: str) -> list[str]:
    return [unescape_pointer(token) for token in pointer.split("/")[1:]]
