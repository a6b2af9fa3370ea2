"""Jobs whose retention time is over."""

from collections.abc import Collection

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import status_list
from app.domain.jobs.status import TERMINAL

_JUDGES_TEXTS = "s.anchors->>'job' = {job} OR s.job#>>'{{responses,job}}' = {job}"
"""Whether a schedule's runs judge a job's texts, as anchors or as what is watched."""


async def lock_expired(
    connection: AsyncConnection, keep_days: int, passed_over: Collection[str], served: Collection[str]
) -> tuple[str, str] | None:
    """Locks the first ended job of those that ended more than so many days ago.

    Locked jobs, baselines, and jobs whose texts a schedule's runs judge are passed over.

    Args:
        connection: Where.
        keep_days: Days since the end.
        passed_over: Ids of further jobs to pass over.
        served: Tenants to pass over.

    Returns:
        Its tenant and id.
    """
    rows = await connection.execute(
        text(
            f"SELECT tenant, id FROM jobs WHERE status IN ({status_list(TERMINAL)})"
            " AND greatest(finished_at, CAST(imported_from->>'imported_at' AS timestamptz))"
            "  < clock_timestamp() - make_interval(days => :days)"
            " AND finished_at < clock_timestamp() - make_interval(days => :days)"
            " AND NOT EXISTS (SELECT FROM named_baselines b WHERE b.job_id = jobs.id)"
            " AND NOT EXISTS (SELECT FROM schedules s WHERE s.tenant = jobs.tenant"
            f" AND ({_JUDGES_TEXTS.format(job='jobs.id')}))"
            " AND id <> ALL(:passed_over) AND tenant <> ALL(:served) ORDER BY finished_at LIMIT 1 FOR UPDATE SKIP LOCKED"
        ),
        {"days": keep_days, "passed_over": list(passed_over), "served": list(served)},
    )
    row = rows.first()
    return None if row is None else (row.tenant, row.id)


async def schedules_judging(connection: AsyncConnection, tenant: str, job_id: str) -> list[str]:
    """The schedules whose runs judge a job's texts: name, if any, and id."""
    rows = await connection.execute(
        text(
            "SELECT coalesce(s.name || ' (' || s.id || ')', s.id) FROM schedules s WHERE s.tenant = :tenant"
            f" AND ({_JUDGES_TEXTS.format(job=':job')}) ORDER BY s.id"
        ),
        {"tenant": tenant, "job": job_id},
    )
    return list(rows.scalars())
