"""What two judges gave the same texts, in one job or in two: counted in the database and read as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.results.result_queries import FETCHED
from app.domain.metrics.metric import IntArray
from app.domain.results.bridge_agreement import NOTHING_TO_SCORE, UNREADABLE


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge of a job: its index among the job's judges."""

    job: str
    judge: int


class SameTrait(NamedTuple):
    """A trait of a cell in the old job, the same in the new one, and the number of its dimension and level."""

    old_cell: int
    old_trait: int
    new_cell: int
    new_trait: int
    kind: int


class SameQuestion(NamedTuple):
    """A question of a PersonaGym task, by its number in the old job's cell and in the new one's."""

    old_cell: int
    new_cell: int
    old_item: int
    new_item: int


@dataclass(frozen=True, slots=True)
class SamePlaces:
    """Where both jobs may have the same texts.

    Attributes:
        cells: Ordinals of the same atomic cell in the old and the new job, whose items have the same numbers.
        questions: Of PersonaGym's.
    """

    cells: Sequence[tuple[int, int]]
    questions: Sequence[SameQuestion]

    def values(self, tenant: str, old: Judge, new: Judge) -> dict[str, Any]:
        """Of :data:`_TEXTS`."""
        cells = {"old_cells": [old for old, _ in self.cells], "new_cells": [new for _, new in self.cells]}
        questions = {
            f"q_{name}": [getattr(each, name) for each in self.questions] for name in SameQuestion._fields
        }
        return {"tenant": tenant, "old": old.job, "new": new.job} | cells | questions


_CELLS = (
    " JOIN cells o ON o.ordinal = p.old_cell AND o.job_id = :old AND o.tenant = :tenant"
    " JOIN cells n ON n.ordinal = p.new_cell AND n.job_id = :new AND n.tenant = :tenant"
    " JOIN responses r ON r.cell_id = n.id AND r.tenant = :tenant AND r.status = 'answered'"
)
_SAME = " AND s.run = r.run AND s.tenant = :tenant AND s.status = 'answered' AND s.text = r.text"
_COLUMNS = (
    "SELECT p.old_cell, p.new_cell, r.run, s.item AS old_item, r.item AS new_item, o.id AS old_id, n.id AS new_id,"
    " s.unit_starts = r.unit_starts AND s.unit_ends = r.unit_ends AS alike"
)
_TEXTS = (
    "WITH texts AS ("
    f"{_COLUMNS} FROM unnest(CAST(:old_cells AS int[]), CAST(:new_cells AS int[])) AS p (old_cell, new_cell)"
    f"{_CELLS} JOIN responses s ON s.cell_id = o.id AND s.item = r.item{_SAME}"
    f" UNION ALL {_COLUMNS} FROM unnest(CAST(:q_old_cell AS int[]), CAST(:q_new_cell AS int[]), CAST(:q_old_item AS int[]),"
    "  CAST(:q_new_item AS int[])) AS p (old_cell, new_cell, old_item, new_item)"
    f"{_CELLS} AND r.item = p.new_item JOIN responses s ON s.cell_id = o.id AND s.item = p.old_item{_SAME})"
)
"""The answered texts of the new job that the old one has at the same place."""


async def same_texts(connection: AsyncConnection, values: Mapping[str, Any]) -> IntArray:
    """Their places.

    Args:
        connection: Where.
        values: Those of :meth:`SamePlaces.values`.

    Returns:
        Shape (n, 5): the cell's ordinal in the old and in the new job, the run, and the item in the old and in the new job.
    """
    return await _read(
        connection, f"{_TEXTS} SELECT old_cell, new_cell, run, old_item, new_item FROM texts", values, 5
    )


async def score_counts(
    connection: AsyncConnection, tenant: str, judge: Judge, traits: Sequence[tuple[int, int]]
) -> IntArray:
    """How often a judge gave each response each score, for these traits, each with its cell's ordinal.

    Returns:
        Shape (n, 6): cell, trait, run, item, score, number of sentences.
    """
    return await _read(
        connection,
        "SELECT t.cell, t.trait, v.run, v.item, v.score, count(*)"
        " FROM unnest(CAST(:cells AS int[]), CAST(:traits AS int[])) AS t (cell, trait)"
        " JOIN cells c ON c.ordinal = t.cell JOIN verdicts v ON v.cell_id = c.id AND v.trait = t.trait"
        " WHERE c.job_id = :job AND c.tenant = :tenant AND v.tenant = :tenant"
        "  AND v.judge = :judge AND v.status = 'scored' GROUP BY t.cell, t.trait, v.run, v.item, v.score",
        {"job": judge.job, "tenant": tenant, "judge": judge.judge}
        | {"cells": [cell for cell, _ in traits], "traits": [trait for _, trait in traits]},
        6,
    )


async def grades(connection: AsyncConnection, tenant: str, judge: Judge, cells: Sequence[int]) -> IntArray:
    """The grades that a judge gave in these cells.

    Returns:
        Shape (n, 4): cell, run, item, grade; without a grade :data:`UNREADABLE`.
    """
    return await _read(
        connection,
        "SELECT c.ordinal, g.run, g.item, coalesce(g.score::int, :unreadable) FROM cells c JOIN grades g ON g.cell_id = c.id"
        " WHERE c.job_id = :job AND c.tenant = :tenant AND g.tenant = :tenant AND g.judge = :judge"
        "  AND c.ordinal = ANY(:cells)",
        {
            "job": judge.job,
            "tenant": tenant,
            "judge": judge.judge,
            "cells": [*cells],
            "unreadable": UNREADABLE,
        },
        4,
    )


_SAID = (
    "CASE {0}.status WHEN 'scored' THEN {0}.score::int WHEN 'not_applicable' THEN CAST(:nothing AS int)"
    " ELSE CAST(:unreadable AS int) END"
)


async def both_verdicts(
    connection: AsyncConnection,
    values: Mapping[str, Any],
    judges: tuple[Judge, Judge],
    traits: Sequence[SameTrait],
) -> IntArray:
    """What both judges gave the sentences of the same texts, where both jobs split these alike.

    Args:
        connection: Where.
        values: Those of :meth:`SamePlaces.values`.
        judges: The old and the new one.
        traits: What both jobs judge.

    Returns:
        Shape (n, 5): dimension and level, the text's number, what the new and what the old judge said, and of how many sentences;
        in the texts' order.
    """
    columns = {name: [getattr(each, name) for each in traits] for name in SameTrait._fields}
    given = ", ".join(f"CAST(:{name} AS int[])" for name in columns)
    return await _read(
        connection,
        _TEXTS
        + ", numbered AS (SELECT *, row_number() OVER (ORDER BY old_cell, run, old_item) - 1 AS number FROM texts)"
        f" SELECT p.kind, t.number, {_SAID.format('w')}, {_SAID.format('v')}, count(*)"
        f" FROM unnest({given}) AS p ({', '.join(columns)})"
        " JOIN numbered t ON t.old_cell = p.old_cell AND t.new_cell = p.new_cell AND t.alike"
        " JOIN verdicts v ON v.cell_id = t.old_id AND v.run = t.run AND v.item = t.old_item AND v.trait = p.old_trait"
        "  AND v.judge = :old_judge AND v.tenant = :tenant"
        " JOIN verdicts w ON w.cell_id = t.new_id AND w.run = t.run AND w.item = t.new_item AND w.trait = p.new_trait"
        "  AND w.judge = :new_judge AND w.unit = v.unit AND w.tenant = :tenant"
        " GROUP BY 1, 2, 3, 4 ORDER BY 2",
        {"old_judge": judges[0].judge, "new_judge": judges[1].judge}
        | {"nothing": NOTHING_TO_SCORE, "unreadable": UNREADABLE}
        | columns
        | dict(values),
        5,
    )


async def answered(connection: AsyncConnection, tenant: str, job: str, cells: int) -> int:
    """How many answered responses a job's first cells have."""
    found = await connection.execute(
        text(
            "SELECT count(*) FROM cells c JOIN responses r ON r.cell_id = c.id WHERE c.job_id = :job"
            " AND c.tenant = :tenant AND r.tenant = :tenant AND r.status = 'answered' AND c.ordinal < :cells"
        ),
        {"job": job, "tenant": tenant, "cells": cells},
    )
    return int(found.scalar_one())


async def _read(
    connection: AsyncConnection, statement: str, values: Mapping[str, Any], columns: int
) -> IntArray:
    """Rows of integers as an array, some at a time, so that they are never all there as objects."""
    rows = await connection.stream(text(statement), dict(values))
    parts = [
        np.array([tuple(row) for row in part], dtype=np.int64) async for part in rows.partitions(FETCHED)
    ]
    return np.concatenate([np.empty((0, columns), dtype=np.int64), *parts])
