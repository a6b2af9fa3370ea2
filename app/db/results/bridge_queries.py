"""What two judges gave the same texts, in one job or in two."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.results.result_queries import FETCHED


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge of a job: its index among the job's judges."""

    job: str
    judge: int


class TraitRange(NamedTuple):
    """A trait of a cell, and the scores that lie in the persona's level."""

    cell: int
    trait: int
    lowest: int
    highest: int


class ScoredRow(NamedTuple):
    """A judge's scores of a response for one trait."""

    cell: int
    trait: int
    run: int
    item: int
    sentences: int
    total: int
    squares: int
    hits: int


class SameTrait(NamedTuple):
    """A trait of a cell in the old job, and the same in the new one."""

    old_cell: int
    old_trait: int
    new_cell: int
    new_trait: int


class SameText(NamedTuple):
    """A text that both jobs have at the same place; its cell is the old job's."""

    cell: int
    new_cell: int
    run: int
    item: int


class BothVerdicts(NamedTuple):
    """Two judges' verdicts on one sentence; its cell and trait are the old job's."""

    cell: int
    trait: int
    run: int
    item: int
    new_status: str
    new_score: int | None
    old_status: str
    old_score: int | None


async def scores(
    connection: AsyncConnection, tenant: str, judge: Judge, traits: Sequence[TraitRange]
) -> AsyncIterator[Sequence[ScoredRow]]:
    """What a judge gave each response that has a scored sentence, by trait, some at a time."""
    cells, numbers, lowest, highest = (list(column) for column in zip(*traits, strict=True))
    rows = await connection.stream(
        text(
            "SELECT t.cell, t.trait, v.run, v.item, count(*), sum(v.score)::bigint, sum(v.score::int * v.score)::bigint,"
            " count(*) FILTER (WHERE v.score BETWEEN t.lowest AND t.highest)"
            " FROM unnest(CAST(:cells AS int[]), CAST(:traits AS int[]), CAST(:lowest AS int[]), CAST(:highest AS int[]))"
            "  AS t (cell, trait, lowest, highest)"
            " JOIN cells c ON c.ordinal = t.cell JOIN verdicts v ON v.cell_id = c.id AND v.trait = t.trait"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND v.tenant = :tenant"
            "  AND v.judge = :judge AND v.status = 'scored' GROUP BY t.cell, t.trait, v.run, v.item"
        ),
        {"job": judge.job, "tenant": tenant, "judge": judge.judge}
        | {"cells": cells, "traits": numbers, "lowest": lowest, "highest": highest},
    )
    async for part in rows.partitions(FETCHED):
        yield [ScoredRow(*row) for row in part]


_BOTH = (
    " JOIN cells o ON o.ordinal = p.old_cell AND o.job_id = :old AND o.tenant = :tenant"
    " JOIN cells n ON n.ordinal = p.new_cell AND n.job_id = :new AND n.tenant = :tenant"
    " JOIN responses r ON r.cell_id = n.id AND r.tenant = :tenant AND r.status = 'answered'"
    " JOIN responses s ON s.cell_id = o.id AND s.run = r.run AND s.item = r.item AND s.tenant = :tenant"
    "  AND s.status = 'answered' AND s.text = r.text"
)


async def same_texts(
    connection: AsyncConnection, tenant: str, old: str, new: str, cells: Sequence[tuple[int, int]]
) -> list[SameText]:
    """The answered texts of the new job that the old one has at the same place.

    Args:
        connection: Where.
        tenant: Whose jobs.
        old: The old job.
        new: The new one.
        cells: Ordinals of the same cell in the old and the new job.
    """
    old_cells, new_cells = (list(column) for column in zip(*cells, strict=True))
    rows = await connection.execute(
        text(
            "SELECT p.old_cell, p.new_cell, r.run, r.item"
            " FROM unnest(CAST(:old_cells AS int[]), CAST(:new_cells AS int[])) AS p (old_cell, new_cell)"
            + _BOTH
        ),
        {"tenant": tenant, "old": old, "new": new, "old_cells": old_cells, "new_cells": new_cells},
    )
    return [SameText(*row) for row in rows]


async def both_verdicts(
    connection: AsyncConnection, tenant: str, old: Judge, new: Judge, traits: Sequence[SameTrait]
) -> AsyncIterator[Sequence[BothVerdicts]]:
    """Both judges' verdicts on the sentences of the same texts, where both jobs split these alike; response by response."""
    columns = dict(zip(SameTrait._fields, (list(each) for each in zip(*traits, strict=True)), strict=True))
    given = ", ".join(f"CAST(:{name} AS int[])" for name in columns)
    rows = await connection.stream(
        text(
            "SELECT p.old_cell, p.old_trait, r.run, r.item, w.status, w.score, v.status, v.score"
            f" FROM unnest({given}) AS p ({', '.join(columns)})"
            + _BOTH
            + " AND s.unit_starts = r.unit_starts AND s.unit_ends = r.unit_ends"
            " JOIN verdicts v ON v.cell_id = o.id AND v.run = r.run AND v.item = r.item AND v.trait = p.old_trait"
            "  AND v.judge = :old_judge AND v.tenant = :tenant"
            " JOIN verdicts w ON w.cell_id = n.id AND w.run = r.run AND w.item = r.item AND w.trait = p.new_trait"
            "  AND w.judge = :new_judge AND w.unit = v.unit AND w.tenant = :tenant"
            " ORDER BY p.old_cell, r.run, r.item"
        ),
        {"tenant": tenant, "old": old.job, "new": new.job, "old_judge": old.judge, "new_judge": new.judge}
        | columns,
    )
    async for part in rows.partitions(FETCHED):
        yield [BothVerdicts(*row) for row in part]


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
