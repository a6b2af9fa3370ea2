"""Pages of lists, and cursors: where the next page begins, opaque to clients."""

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Query

from app.api.http.problems import ProblemError, wrong_field
from app.domain.contract import Answer, Page, check_storable

T = TypeVar("T")
_LARGEST = 2**31 - 1
"""Of a position's parts, and of what lists are ordered by."""


class Entry(Protocol):
    """What is listed by its creation."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def created_at(self) -> datetime:
        """When it was made."""


Made = TypeVar("Made", bound=Entry)
Kind = TypeVar("Kind", bound=Page[Any])

PageLimit = Annotated[int, Query(ge=1, le=500)]
"""How many entries a page has at most."""
After = Annotated[str | None, Query(description="`next_cursor` of the page before.", max_length=1000)]
"""Where a page begins; ``None`` for the first one."""


def cut(found: Sequence[T], limit: int, cursor: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The entries of a page, and the cursor behind it if there is another one.

    Args:
        found: The entries, and one more if there is another page.
        limit: How many entries a page has at most.
        cursor: The cursor behind an entry.
    """
    return found[:limit], cursor(found[limit - 1]) if len(found) > limit else None


def page(
    kind: type[Kind],
    found: Sequence[T],
    limit: int,
    show: Callable[[T], Answer] | None,
    cursor: Callable[[T], str],
) -> Kind:
    """A page of a list; see :func:`cut`.

    Args:
        kind: What the page is.
        found: Its entries, and one more if there is another page.
        limit: How many entries it has at most.
        show: An entry as it is shown; ``None`` if that is what it is.
        cursor: The cursor behind an entry.
    """
    entries, following = cut(found, limit, cursor)
    data = entries if show is None else [show(entry) for entry in entries]
    return kind(data=data, has_more=following is not None, next_cursor=following)


def newest_first(
    kind: type[Kind], found: Sequence[Made], limit: int, show: Callable[[Made], Answer] | None = None
) -> Kind:
    """A page of a list that is ordered by creation; see :func:`page`."""
    return page(kind, found, limit, show, of_entry)


def encoded(values: list[Any]) -> str:
    """A cursor of these values."""
    return base64.urlsafe_b64encode(json.dumps(values, ensure_ascii=False).encode()).decode().rstrip("=")


def of_key(key: datetime | str | float, id_: str) -> str:
    """The cursor behind an entry of a list that is ordered by a key, then by ids."""
    return of_moment(key, id_) if isinstance(key, datetime) else encoded([key, id_])


def key_and_id(
    cursor: str, kind: type[datetime] | type[str] | type[float]
) -> tuple[datetime | str | float, str]:
    """What :func:`of_key` encoded of a key of this kind.

    Raises:
        ProblemError: If it did not.
    """
    if kind is datetime:
        return moment(cursor)
    match _decoded(cursor):
        case [str(key), str(id_)] if kind is str and _storable(key + id_):
            return key, id_
        case [float(key) | int(key), str(id_)] if kind is float and abs(key) < _LARGEST and _storable(id_):
            return float(key), id_
    raise _bad()


def _storable(text: str) -> bool:
    try:
        check_storable(text)
    except ValueError:
        return False
    return True


def of_moment(created_at: datetime, id_: str) -> str:
    """The cursor behind an entry that was made at a moment and has an id."""
    return encoded([created_at.isoformat(), id_])


def of_entry(entry: Entry) -> str:
    """The cursor behind an entry of a list that is ordered by creation."""
    return of_moment(entry.created_at, entry.id)


def beginning(after: str | None) -> tuple[datetime, str] | None:
    """Behind which entry of a list that is ordered by creation a page begins; ``None`` for the first page.

    Raises:
        ProblemError: If ``after`` is no cursor of such a list.
    """
    return None if after is None else moment(after)


def moment(cursor: str) -> tuple[datetime, str]:
    """What :func:`of_moment` encoded.

    Raises:
        ProblemError: If it did not.
    """
    match _decoded(cursor):
        case [str(created_at), str(id_)] if "\0" not in id_:
            try:
                id_.encode()  # a lone surrogate is no text that the database could be asked for
                return datetime.fromisoformat(created_at), id_
            except ValueError:
                raise _bad() from None
    raise _bad()


def position(cursor: str) -> tuple[int, int, int]:
    """Cell, run and item of a response.

    Raises:
        ProblemError: If the cursor names none.
    """
    return _place(_decoded(cursor))


def mark(cursor: str) -> tuple[float, tuple[int, int, int]]:
    """By what a response is ordered, and its cell, run and item; infinite where it has no such value.

    Raises:
        ProblemError: If the cursor names none.
    """
    match _decoded(cursor):
        case [None, *place]:
            return math.inf, _place(place)
        case [int(value) | float(value), *place] if abs(value) < _LARGEST:
            return float(value), _place(place)
    raise _bad()


def _place(found: Any) -> tuple[int, int, int]:
    match found:
        case [int(cell), int(run), int(item)] if all(
            0 <= n <= _LARGEST and n is not True and n is not False for n in (cell, run, item)
        ):
            return cell, run, item
    raise _bad()


def before_response(response: str) -> str | None:
    """The cursor of a page that begins with a response, by its id; ``None`` if it is the first of all."""
    cell, run, item = map(int, response.split("-")[-3:])
    if item:
        return encoded([cell, run, item - 1])
    if run:
        return encoded([cell, run - 1, _LARGEST])
    return encoded([cell - 1, _LARGEST, _LARGEST]) if cell else None


def number(cursor: str) -> int:
    """The number behind an entry of a list that is ordered by one.

    Raises:
        ProblemError: If the cursor names none.
    """
    match _decoded(cursor):
        case [int(found)] if 0 <= found < 2**63 and found is not True and found is not False:
            return found
    raise _bad()


def _decoded(cursor: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        return None


def _bad() -> ProblemError:
    return wrong_field("/query/after", "is not a valid cursor")
