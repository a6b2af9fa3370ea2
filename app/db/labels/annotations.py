"""What people say of a job's sentences and responses."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.labels.tables import SUBJECT, AnnotationRow
from app.db.locks import lock
from app.db.places import place_arrays
from app.domain.labels.annotation import ROWS_AT_ONCE, Annotation, Answer, Place

_KEPT = dict.fromkeys((*SUBJECT[1:], "answer", "score"), "int")
_KEPT |= dict.fromkeys(("annotator", "dimension", "answer"), "text")
"""What comes of an annotation itself, with the kind of value."""

_KEEP = text(
    f"WITH kept AS (INSERT INTO annotations AS old (tenant, job_id, {', '.join(_KEPT)})"
    f" SELECT :tenant, :job, * FROM unnest({', '.join(f'CAST(:{name} AS {kind}[])' for name, kind in _KEPT.items())})"
    f" ON CONFLICT ({', '.join(SUBJECT)}) DO UPDATE"
    " SET answer = excluded.answer, score = excluded.score, updated_at = clock_timestamp()"
    " WHERE (old.answer, old.score) IS DISTINCT FROM (excluded.answer, excluded.score) RETURNING xmax = 0 AS created)"
    " SELECT count(*) FILTER (WHERE created) AS created, count(*) FILTER (WHERE NOT created) AS changed FROM kept"
)


@dataclass(frozen=True, slots=True)
class KnownResponse:
    """What has to be known of a response to accept an answer about it.

    Attributes:
        status: ``answered``, ``refused`` or ``failed``.
        units: How many sentences it has.
    """

    status: str
    units: int


@dataclass(frozen=True, slots=True)
class StoredAnnotation:
    """A row of ``annotations``."""

    id: int
    job_id: str
    annotation: Annotation
    created_at: datetime
    updated_at: datetime


async def hold(connection: AsyncConnection, job_id: str) -> None:
    """Lets nobody else keep answers about the job until the transaction ends."""
    await lock(connection, f"annotations of {job_id}")


async def keep(
    connection: AsyncConnection, tenant: str, job_id: str, annotations: Sequence[Annotation]
) -> Counter[str]:
    """Keeps answers, in place of the same annotator's earlier ones about the same.

    Whoever keeps others of the same job at the same time waits: each would hold rows that the other one needs.

    Args:
        connection: Where.
        tenant: Whose job it is.
        job_id: Which job.
        annotations: Each about another thing, or by somebody else; pairs in order.

    Returns:
        How many were ``created`` and how many ``changed``.
    """
    await hold(connection, job_id)
    counts: Counter[str] = Counter()
    for start in range(0, len(annotations), ROWS_AT_ONCE):
        columns = zip(*map(_values, annotations[start : start + ROWS_AT_ONCE]), strict=True)
        given = {name: list(values) for name, values in zip(_KEPT, columns, strict=True)}
        written = await connection.execute(_KEEP, {"tenant": tenant, "job": job_id, **given})
        created, changed = written.one()
        counts.update(created=created, changed=changed)
    return counts


def _values(each: Annotation) -> tuple[object, ...]:
    """One annotation's values of :data:`_KEPT`."""
    other = (None,) * 4 if each.other is None else each.other
    return each.annotator, each.dimension, *each.place, *other, each.answer.value, each.score


async def read_page(
    connection: AsyncConnection,
    tenant: str,
    *,
    job_id: str | None,
    annotator: str | None,
    after: int,
    limit: int,
) -> list[StoredAnnotation]:
    """A tenant's annotations in the order in which they were first given.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Only this job's.
        annotator: Only this person's.
        after: Id of the last one of the page before; 0 for the first page.
        limit: At most so many.
    """
    row = AnnotationRow
    query = select(row).where(row.tenant == tenant, row.id > after).order_by(row.id).limit(limit)
    if job_id is not None:
        query = query.where(row.job_id == job_id)
    if annotator is not None:
        query = query.where(row.annotator == annotator)
    return [_stored(found) for found in await connection.execute(query)]


def _stored(row: Any) -> StoredAnnotation:
    other = None
    if row.other_cell is not None:
        other = Place(row.other_cell, row.other_run, row.other_item, row.other_unit)
    annotation = Annotation(
        annotator=row.annotator,
        dimension=row.dimension,
        place=Place(row.cell, row.run, row.item, row.unit),
        other=other,
        answer=Answer(row.answer),
        score=row.score,
    )
    return StoredAnnotation(row.id, row.job_id, annotation, row.created_at, row.updated_at)


async def known_responses(
    connection: AsyncConnection, tenant: str, job_id: str, responses: Sequence[tuple[int, int, int]]
) -> dict[tuple[int, int, int], KnownResponse]:
    """Those of these responses, by cell, run and item, that there are."""
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, r.run, r.item, r.status, cardinality(r.unit_starts)"
            " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])) AS w (cell, run, item)"
            " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            " JOIN responses r ON r.cell_id = c.id AND r.run = w.run AND r.item = w.item AND r.tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant, **place_arrays(responses)},
    )
    return {(cell, run, item): KnownResponse(status, units) for cell, run, item, status, units in rows}


@dataclass(frozen=True, slots=True)
class PeopleScore:
    """What people gave a response, or a sentence of it.

    Attributes:
        unit: The sentence's index; ``None`` for the response as a whole.
        dimension: On which; ``None`` by a PersonaGym task's rubric.
        mean: The mean of their scores.
        answers: How many there are.
    """

    unit: int | None
    dimension: str | None
    mean: float
    answers: int


async def people_scores(
    connection: AsyncConnection, tenant: str, job_id: str, responses: Sequence[tuple[int, int, int]]
) -> dict[tuple[int, int, int], list[PeopleScore]]:
    """What people gave these responses, by cell, run and item, and their sentences, in order."""
    rows = await connection.execute(
        text(
            "SELECT cell, run, item, unit, dimension, avg(score)::float8, count(*) FROM annotations"
            " WHERE job_id = :job AND tenant = :tenant AND score IS NOT NULL AND other_cell IS NULL AND (cell, run, item) IN"
            "  (SELECT * FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])))"
            " GROUP BY cell, run, item, unit, dimension ORDER BY cell, run, item, unit NULLS FIRST, dimension"
        ),
        {"job": job_id, "tenant": tenant, **place_arrays(responses)},
    )
    found: dict[tuple[int, int, int], list[PeopleScore]] = {}
    for cell, run, item, *score in rows:
        found.setdefault((cell, run, item), []).append(PeopleScore(*score))
    return found


async def state(connection: AsyncConnection, tenant: str, job_id: str) -> tuple[int, Decimal, int]:
    """How many annotations a job has, the sum of the moments at which each was last given, and how many labelling rounds.

    The first two together differ whenever one was kept meanwhile. The latest of the moments would not do: of two transactions that
    change something, the earlier one's may be seen later.
    """
    rows = await connection.execute(
        text(
            "SELECT count(*), coalesce(sum(extract(epoch FROM updated_at)), 0),"
            " (SELECT count(*) FROM labelling_rounds WHERE job_id = :job AND tenant = :tenant)"
            " FROM annotations WHERE job_id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
    count, moments, rounds = rows.one()
    return int(count), moments, int(rounds)
