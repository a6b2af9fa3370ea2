"""Judges' further replies on a sentence, and the release that computed a job's results."""

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.results.response_pages import Position


class SecondReply(NamedTuple):
    """A second verdict as it is stored; see :class:`app.db.tables.SecondVerdict`."""

    trait: int
    judge: int
    alone: bool
    status: str
    score: int | None
    raw: str | None
    finish_reason: str | None
    thoughts: str | None
    unread: str | None
    repair_raw: str | None
    error: str | None


async def second_replies(
    connection: AsyncConnection, tenant: str, job_id: str, position: Position, unit: int
) -> list[SecondReply]:
    """The second verdicts on a sentence of the response at a place."""
    cell, run, item = position
    rows = await connection.execute(
        text(
            f"SELECT {', '.join(f's.{name}' for name in SecondReply._fields)} FROM cells c JOIN second_verdicts s ON s.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND c.ordinal = :cell AND s.run = :run AND s.item = :item"
            " AND s.unit = :unit AND s.tenant = :tenant ORDER BY s.trait, s.judge, s.alone"
        ),
        {"job": job_id, "tenant": tenant, "cell": cell, "run": run, "item": item, "unit": unit},
    )
    return list(map(SecondReply._make, rows))


async def release_of_results(connection: AsyncConnection, tenant: str, job_id: str) -> str | None:
    """The release that computed a job's results; ``None`` before there are any."""
    found = await connection.execute(
        text(
            "SELECT results::json #>> '{manifest,versions,persona-assay}' FROM job_results"
            " WHERE job_id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
    release: str | None = found.scalar_one_or_none()
    return release
