"""Rounds of labelling, and the sentences and responses from which they are drawn."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.labels.tables import LabellingRound
from app.domain.labels.annotation import Answer, Place
from app.domain.labels.rounds import Candidate, GradedResponse


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A row of ``labelling_rounds``."""

    id: str
    tenant: str
    job_id: str
    kind: str
    dimension: str
    size: int
    seed: int
    things: list[list[list[int]]]
    strata: list[dict[str, Any]]
    answers_each: int | None
    created_at: datetime


_ROUND = [getattr(LabellingRound, name) for name in RoundRow.__slots__]


async def scored_sentences(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    traits: Collection[tuple[int, int]],
    *,
    each: int,
    seed: int,
) -> list[tuple[str, int, int, Candidate]]:
    """Sentences with a score as (task, mean score rounded, how many have that, sentence), in an order by chance.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        traits: The (cell, trait) that are about the dimension.
        each: At most so many of a task and score.
        seed: Another one gives another order.
    """
    rows = await connection.execute(
        text(
            "WITH scored AS (SELECT c.id, c.task, c.ordinal, v.run, v.item, v.unit, round(avg(v.score))::int AS score"
            "  FROM unnest(CAST(:cells AS int[]), CAST(:traits AS int[])) AS w (cell, trait)"
            "  JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            "  JOIN verdicts v ON v.cell_id = c.id AND v.trait = w.trait AND v.tenant = :tenant"
            "  WHERE v.score IS NOT NULL GROUP BY c.id, v.run, v.item, v.unit),"
            " drawn AS (SELECT *, count(*) OVER (PARTITION BY task, score) AS available,"
            "  row_number() OVER (PARTITION BY task, score"
            "   ORDER BY md5(concat_ws('-', CAST(:seed AS text), ordinal, run, item, unit))) AS place FROM scored)"
            " SELECT d.task, d.score, d.available, d.ordinal, d.run, d.item, d.unit, md5(substr(r.text,"
            "  r.unit_starts[d.unit + 1] + 1, r.unit_ends[d.unit + 1] - r.unit_starts[d.unit + 1])) AS hash"
            " FROM drawn d JOIN responses r ON r.cell_id = d.id AND r.run = d.run AND r.item = d.item"
            " WHERE d.place <= :each AND r.text <> '' ORDER BY d.task, d.score, d.place"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": [cell for cell, _ in traits],
            "traits": [trait for _, trait in traits],
            "each": each,
            "seed": str(seed),
        },
    )
    return [
        (
            row.task,
            row.score,
            row.available,
            Candidate(Place(row.ordinal, row.run, row.item, row.unit), row.hash),
        )
        for row in rows
    ]


async def graded_responses(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    cells: Sequence[tuple[int, int, int]],
    *,
    size: int,
    seed: int,
) -> list[GradedResponse]:
    """So many responses with a grade, and one of each model and task at least, in the order in which they are drawn.

    The personas come by chance, each with a response to each task of each model, of all models to the same question; then each
    with a second one, and so on.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        cells: PersonaGym's, each with the index of its model and of its persona.
        size: At most so many, besides the first of each model and task.
        seed: Another one gives another order.
    """
    rows = await connection.execute(
        text(
            "WITH graded AS (SELECT DISTINCT w.cell, w.model, w.person, c.task, g.run, g.item"
            "  FROM unnest(CAST(:cells AS int[]), CAST(:models AS int[]), CAST(:persons AS int[])) AS w (cell, model, person)"
            "  JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            "  JOIN grades g ON g.cell_id = c.id AND g.tenant = :tenant WHERE g.score IS NOT NULL),"
            " turns AS (SELECT *, count(*) OVER (PARTITION BY model, task) AS available,"
            "  row_number() OVER (PARTITION BY cell"
            "   ORDER BY md5(concat_ws('-', CAST(:seed AS text), person, task, item, run))) AS turn,"
            "  md5(concat_ws('-', CAST(:seed AS text), person)) AS chance FROM graded),"
            " placed AS (SELECT *, row_number() OVER (ORDER BY turn, chance, cell) AS place,"
            "  row_number() OVER (PARTITION BY model, task ORDER BY turn, chance) AS nth FROM turns)"
            " SELECT task, model, available, cell, run, item FROM placed WHERE place <= :size OR nth = 1 ORDER BY place"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": [cell for cell, _, _ in cells],
            "models": [model for _, model, _ in cells],
            "persons": [person for _, _, person in cells],
            "size": size,
            "seed": str(seed),
        },
    )
    return [
        GradedResponse(row.task, row.model, row.available, Place(row.cell, row.run, row.item, None))
        for row in rows
    ]


async def keep_round(connection: AsyncConnection, values: dict[str, Any]) -> str:
    """Keeps a round unless the same has been drawn before, and returns the id of the one that is there."""
    kept = upsert(LabellingRound).values(values)
    names = ("job_id", "kind", "dimension", "size", "seed")
    # An update that changes nothing, so that either way there is a row to return.
    kept = kept.on_conflict_do_update(index_elements=names, set_={"seed": kept.excluded.seed})
    rows = await connection.execute(kept.returning(LabellingRound.id))
    return str(rows.scalar_one())


async def get_round(connection: AsyncConnection, tenant: str, round_id: str) -> RoundRow | None:
    """A tenant's round, if there is one of that id."""
    rows = await connection.execute(
        select(*_ROUND).where(LabellingRound.tenant == tenant, LabellingRound.id == round_id)
    )
    row = rows.first()
    return None if row is None else RoundRow(*row)


async def list_rounds(connection: AsyncConnection, tenant: str, job_id: str, limit: int) -> list[RoundRow]:
    """A job's rounds, the newest first."""
    rows = await connection.execute(
        select(*_ROUND)
        .where(LabellingRound.tenant == tenant, LabellingRound.job_id == job_id)
        .order_by(LabellingRound.created_at.desc(), LabellingRound.id.desc())
        .limit(limit)
    )
    return [RoundRow(*row) for row in rows]


async def rounds_of_job(connection: AsyncConnection, tenant: str, job_id: str) -> list[RoundRow]:
    """All of a job's rounds, the oldest first."""
    rows = await connection.execute(
        select(*_ROUND)
        .where(LabellingRound.tenant == tenant, LabellingRound.job_id == job_id)
        .order_by(LabellingRound.created_at, LabellingRound.id)
    )
    return [RoundRow(*row) for row in rows]


async def find_round(
    connection: AsyncConnection, tenant: str, job_id: str, kind: str, dimension: str, size: int, seed: int
) -> RoundRow | None:
    """The round that was drawn by these, if it was."""
    table = LabellingRound
    rows = await connection.execute(
        select(*_ROUND).where(
            *(table.tenant == tenant, table.job_id == job_id, table.kind == kind),
            *(table.dimension == dimension, table.size == size, table.seed == seed),
        )
    )
    row = rows.first()
    return None if row is None else RoundRow(*row)


_ANSWERS = (
    " FROM labelling_rounds l CROSS JOIN LATERAL jsonb_array_elements(l.things) WITH ORDINALITY AS t (thing, n)"
    " CROSS JOIN LATERAL (SELECT"
    + ",".join(
        f" CAST(thing -> {place} ->> {n} AS int) AS {prefix}{name}"
        for place, prefix in enumerate(("", "other_"))
        for n, name in enumerate(Place._fields)
    )
    + ") w JOIN annotations a ON a.job_id = l.job_id AND a.tenant = l.tenant"
    " AND a.dimension IS NOT DISTINCT FROM nullif(l.dimension, '')"
    " AND a.cell = w.cell AND a.run = w.run AND a.item = w.item AND a.unit IS NOT DISTINCT FROM w.unit"
    " AND (a.other_cell, a.other_run, a.other_item, a.other_unit)"
    " IS NOT DISTINCT FROM (w.other_cell, w.other_run, w.other_item, w.other_unit)"
)
"""The things of rounds, each with what somebody said of it."""


async def count_answered(connection: AsyncConnection, tenant: str, round_id: str) -> list[tuple[str, int]]:
    """How many of a round's things each annotator has answered, by name."""
    rows = await connection.execute(
        text(
            f'SELECT a.annotator, count(*){_ANSWERS} WHERE l.id = :round AND l.tenant = :tenant GROUP BY a.annotator ORDER BY a.annotator COLLATE "C"'
        ),
        {"round": round_id, "tenant": tenant},
    )
    return [(annotator, count) for annotator, count in rows]


async def answers_of(
    connection: AsyncConnection, tenant: str, round_id: str, annotator: str
) -> dict[int, tuple[Answer, int | None]]:
    """An annotator's answers in a round, by item index, with their scores."""
    rows = await connection.execute(
        text(
            f"SELECT t.n - 1, a.answer, a.score{_ANSWERS} WHERE l.id = :round AND l.tenant = :tenant AND a.annotator = :annotator"
        ),
        {"round": round_id, "tenant": tenant, "annotator": annotator},
    )
    return {index: (Answer(answer), score) for index, answer, score in rows}


async def answer_counts(connection: AsyncConnection, tenant: str, round_id: str) -> dict[int, int]:
    """How many have answered each of a round's things, by item index; those that nobody has are not there."""
    rows = await connection.execute(
        text(f"SELECT t.n - 1, count(*){_ANSWERS} WHERE l.id = :round AND l.tenant = :tenant GROUP BY t.n"),
        {"round": round_id, "tenant": tenant},
    )
    return {int(index): int(count) for index, count in rows}


async def texts_of(
    connection: AsyncConnection, tenant: str, job_id: str, places: Sequence[Place]
) -> dict[Place, str]:
    """The text of each of these sentences and responses that is there."""
    rows = await connection.execute(
        text(
            "SELECT w.cell, w.run, w.item, w.unit, CASE WHEN w.unit IS NULL THEN r.text"
            "  ELSE substr(r.text, r.unit_starts[w.unit + 1] + 1,"
            "   r.unit_ends[w.unit + 1] - r.unit_starts[w.unit + 1]) END AS said"
            " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[]), CAST(:units AS int[]))"
            "  AS w (cell, run, item, unit)"
            " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            " JOIN responses r ON r.cell_id = c.id AND r.run = w.run AND r.item = w.item AND r.tenant = :tenant"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": [place.cell for place in places],
            "runs": [place.run for place in places],
            "items": [place.item for place in places],
            "units": [place.unit for place in places],
        },
    )
    return {Place(row.cell, row.run, row.item, row.unit): row.said for row in rows if row.said is not None}
