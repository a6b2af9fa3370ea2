"""Responses in other orders than that of their cells: by score, by how far judges are apart, by length."""

import math
from typing import Literal, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.results.response_pages import HAS_TEXT, LEVELS, Position, Wanted, levels_of

Sort = Literal["score", "-score", "gap", "-gap", "length", "-length"]
"""By what; with a minus from the greatest to the least."""


class Mark(NamedTuple):
    """A response in an order.

    Attributes:
        value: By what it is ordered, from the least to the greatest; infinite where it has no such value, which is last.
        place: Where it is; by this those are ordered that have the same value.
    """

    value: float
    place: Position


_OF_CELLS = (
    "JOIN cells o ON o.id = j.cell_id AND o.job_id = :job AND o.tenant = :tenant AND o.ordinal = ANY(:cells)"
    " WHERE j.tenant = :tenant AND j.score IS NOT NULL"
)
_PLACE = "j.cell_id, j.run, j.item"
_SHARES = (
    f"SELECT {_PLACE}, sum((j.score BETWEEN l.lowest[j.trait + 1] AND l.highest[j.trait + 1])::int) / count(*)::float8 AS value"
    f" FROM verdicts j {_OF_CELLS.replace(' WHERE', ' JOIN levels l ON l.cell = o.ordinal WHERE')} GROUP BY {_PLACE}"
)
_GAPS = (
    "SELECT cell_id, run, item, max(value) AS value FROM"
    f" (SELECT {_PLACE}, max(j.score) - min(j.score) AS value FROM verdicts j {_OF_CELLS} GROUP BY {_PLACE}, j.unit, j.trait) units"
    " GROUP BY cell_id, run, item"
)


def _of_grades(value: str) -> str:
    return f"SELECT {_PLACE}, {value} AS value FROM grades j {_OF_CELLS} GROUP BY {_PLACE}"


def _joined(verdicts: str, grades: str) -> str:
    return (
        f" LEFT JOIN ({verdicts}) judged USING (cell_id, run, item)"
        f" LEFT JOIN ({grades}) graded USING (cell_id, run, item)"
    )


_BY = {
    "length": ("cardinality(r.unit_starts)", ""),
    "score": (
        "coalesce(graded.value, judged.value)",
        _joined(_SHARES, _of_grades("(sum(j.score) / count(*)::float8 - 1) / 4")),
    ),
    "gap": (
        "greatest(graded.value, judged.value)",
        _joined(_GAPS, _of_grades("max(j.score) - min(j.score)")),
    ),
}
"""What each order is by, and what that is joined from: of a score the share of a response's scores that lie in the persona's level, or
where its mean grade lies on the scale; of a gap the farthest that judges are apart on a sentence and dimension, or in grades."""


async def sorted_places(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    wanted: Wanted,
    sort: Sort,
    *,
    after: Mark | None,
    number: int,
) -> list[Mark]:
    """So many responses of the wanted cells and text in an order, whatever judges said of them, after another one."""
    value, joined = _BY[sort.removeprefix("-")]
    begin = after or Mark(-math.inf, (-1, -1, -1))
    rows = await connection.execute(
        text(
            f"{LEVELS} SELECT value, ordinal, run, item FROM (SELECT ordinal, run, item,"
            f" coalesce({'-' if sort.startswith('-') else ''}({value})::float8, 'Infinity') AS value"
            f" FROM responses r JOIN cells c ON c.id = r.cell_id{joined}"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant AND c.ordinal = ANY(:cells)"
            f"{'' if wanted.text is None else f' AND {HAS_TEXT}'}) sorted"
            " WHERE (value, ordinal, run, item) > (CAST(:value AS float8), :cell, :run, :item)"
            " ORDER BY value, ordinal, run, item LIMIT :number"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": list(wanted.cells),
            "value": begin.value,
            **dict(zip(("cell", "run", "item"), begin.place, strict=True)),
            "number": number,
            **levels_of(wanted),
            **({} if wanted.text is None else {"text": wanted.text}),
        },
    )
    return [Mark(found.value, (found.ordinal, found.run, found.item)) for found in rows]
