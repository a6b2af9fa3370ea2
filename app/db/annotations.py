"""What people say of a job's sentences and responses."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.annotation_tables import SUBJECT, AnnotationRow
from app.domain.annotation import Annotation, Answer, Place

ROWS_AT_ONCE = 1_000
"""Rows of one statement; the driver takes no more than 65,535 values."""


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


async def keep(
    connection: AsyncConnection, tenant: str, job_id: str, annotations: Sequence[Annotation]
) -> Counter[str]:
    """Keeps answers, in place of the same annotator's earlier ones about the same.

    Args:
        connection: Where.
        tenant: Whose job it is.
        job_id: Which job.
        annotations: Each about another thing, or by somebody else; pairs in order.

    Returns:
        How many were ``created`` and how many ``changed``.
    """
    counts: Counter[str] = Counter()
    for start in range(0, len(annotations), ROWS_AT_ONCE):
        rows = [_values(tenant, job_id, each) for each in annotations[start : start + ROWS_AT_ONCE]]
        statement = upsert(AnnotationRow).values(rows)
        new, old = statement.excluded, AnnotationRow
        statement = statement.on_conflict_do_update(
            index_elements=list(SUBJECT),
            set_={"answer": new.answer, "score": new.score, "updated_at": text("clock_timestamp()")},
            where=or_(old.answer.is_distinct_from(new.answer), old.score.is_distinct_from(new.score)),
        )
        written = await connection.execute(statement.returning(text("(xmax = 0) AS created")))
        counts.update("created" if row.created else "changed" for row in written)
    return counts


def _values(tenant: str, job_id: str, each: Annotation) -> dict[str, Any]:
    other = (None,) * 4 if each.other is None else each.other
    places = dict(zip(SUBJECT[3:], (*each.place, *other), strict=True))
    return places | {
        "tenant": tenant,
        "job_id": job_id,
        "annotator": each.annotator,
        "dimension": each.dimension,
        "answer": each.answer.value,
        "score": each.score,
    }


async def read_page(
    connection: AsyncConnection,
    tenant: str,
    *,
    job_id: str | None,
    annotator: str | None,
    after: int,
    limit: int | None,
) -> list[StoredAnnotation]:
    """A tenant's annotations in the order in which they were first given.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Only this job's.
        annotator: Only this person's.
        after: Id of the last one of the page before; 0 for the first page.
        limit: At most so many; ``None`` for all.
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
    connection: AsyncConnection, tenant: str, job_id: str, responses: Collection[tuple[int, int, int]]
) -> dict[tuple[int, int, int], KnownResponse]:
    """Those of these responses, by cell, run and item, that there are."""
    wanted = sorted(responses)
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, r.run, r.item, r.status, cardinality(r.unit_starts)"
            " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])) AS w (cell, run, item)"
            " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            " JOIN responses r ON r.cell_id = c.id AND r.run = w.run AND r.item = w.item AND r.tenant = :tenant"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": [cell for cell, _, _ in wanted],
            "runs": [run for _, run, _ in wanted],
            "items": [item for _, _, item in wanted],
        },
    )
    return {(cell, run, item): KnownResponse(status, units) for cell, run, item, status, units in rows}


async def last_change(connection: AsyncConnection, tenant: str, job_id: str) -> tuple[int, datetime | None]:
    """How many annotations a job has, and when one was last given or changed."""
    rows = await connection.execute(
        text("SELECT count(*), max(updated_at) FROM annotations WHERE job_id = :job AND tenant = :tenant"),
        {"job": job_id, "tenant": tenant},
    )
    count, moment = rows.one()
    return int(count), moment
