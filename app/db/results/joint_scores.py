"""What several judges gave the same units: counted in the database, because that is all that their agreement needs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.results.result_queries import FETCHED


@dataclass(frozen=True, slots=True)
class JointRow:
    """How many units of a cell the judges gave these scores for one trait.

    Attributes:
        cell: The cell's ordinal.
        trait: Index among the persona's traits.
        scores: (index among the job's judges, score) of every judge that gave one, in the judges' order.
        units: How many units have exactly these.
    """

    cell: int
    trait: int
    scores: Sequence[tuple[int, int]]
    units: int


async def joint_scores(connection: AsyncConnection, tenant: str, job_id: str) -> list[JointRow]:
    """All scored units of a job, by who gave which score; a cell has as many rows as there are different ones."""
    rows = await connection.execute(
        text(
            "SELECT ordinal, trait, scores, count(*) FROM ("
            " SELECT c.ordinal, v.trait, array_agg(ARRAY[v.judge, v.score] ORDER BY v.judge) AS scores"
            " FROM cells c JOIN verdicts v ON v.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND v.tenant = :tenant AND v.status = 'scored'"
            " GROUP BY c.ordinal, v.run, v.item, v.unit, v.trait"
            ") units GROUP BY ordinal, trait, scores"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [JointRow(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class ResponseJointRow:
    """How many sentences of a response the judges gave these scores for one dimension.

    Attributes:
        cell: The cell's ordinal.
        run: The response's run.
        item: Which item it answers.
        scores: As those of :class:`JointRow`.
        units: How many sentences have exactly these.
    """

    cell: int
    run: int
    item: int
    scores: Sequence[tuple[int, int]]
    units: int


async def joint_scores_of_responses(
    connection: AsyncConnection, tenant: str, job_id: str, traits: Collection[tuple[int, int]]
) -> list[ResponseJointRow]:
    """All scored sentences on the dimension that these (cell, trait) are about, by response and by who gave which score."""
    rows = await connection.stream(
        text(
            "SELECT ordinal, run, item, scores, count(*) FROM ("
            " SELECT c.ordinal, v.run, v.item, array_agg(ARRAY[v.judge, v.score] ORDER BY v.judge) AS scores"
            " FROM unnest(CAST(:cells AS int[]), CAST(:traits AS int[])) AS w (cell, trait)"
            " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = w.cell"
            " JOIN verdicts v ON v.cell_id = c.id AND v.trait = w.trait AND v.tenant = :tenant"
            " WHERE v.score IS NOT NULL GROUP BY c.ordinal, v.run, v.item, v.unit"
            ") units GROUP BY ordinal, run, item, scores ORDER BY ordinal, run, item, scores"
        ),
        {
            "job": job_id,
            "tenant": tenant,
            "cells": [cell for cell, _ in traits],
            "traits": [trait for _, trait in traits],
        },
    )
    # Some ten thousand rows at once would hold up whoever else uses the event loop.
    return [ResponseJointRow(*row) async for part in rows.partitions(FETCHED) for row in part]
