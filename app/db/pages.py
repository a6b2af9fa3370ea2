"""Pages of lists: which rows follow those of the page before."""

from typing import Any, TypeVarTuple

from sqlalchemy import ColumnElement, Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

Columns = TypeVarTuple("Columns")


def page_of(
    query: Select[*Columns],
    *order: ColumnElement[Any] | InstrumentedAttribute[Any],
    limit: int,
    after: tuple[Any, ...] | None,
    descending: bool = True,
) -> Select[*Columns]:
    """A page of what a query finds.

    Args:
        query: It, in no order yet.
        order: By what the list is ordered; together no two rows have the same.
        limit: How many rows it has at most.
        after: The last row of the page before, as it is ordered; ``None`` for the first page.
        descending: Whether the list begins with the highest.
    """
    if after is not None:
        place = tuple_(*order)
        query = query.where(place < after if descending else place > after)
    return query.order_by(*(each.desc() if descending else each.asc() for each in order)).limit(limit)
