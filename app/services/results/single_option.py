"""Infers an option that a request leaves out if there is only one."""

from collections.abc import Sequence

from app.domain.errors import FieldError, InvalidJobError

MOST_NAMED = 20


def only(name: str, wanted: str | None, known: Sequence[str]) -> str:
    """What was named, or the only one that there is.

    Args:
        name: The query's parameter.
        wanted: What it says.
        known: What there is.

    Raises:
        InvalidJobError: If there is no such one, none at all, or several and none was named.
    """
    distinct = list(dict.fromkeys(known))
    if not distinct:
        raise InvalidJobError([FieldError(f"/query/{name}", "no judged sentences match this filter")])
    if wanted is None and len(distinct) == 1:
        return distinct[0]
    if wanted is None:
        raise InvalidJobError([FieldError(f"/query/{name}", f"is required: one of {', '.join(distinct)}")])
    if wanted not in distinct:
        some = ", ".join(distinct[:MOST_NAMED]) + (", …" if len(distinct) > MOST_NAMED else "")
        raise InvalidJobError([FieldError(f"/query/{name}", f"must be one of {some}")])
    return wanted
