"""The runs of schedules: one for each due time, from when it is due until its figures are kept."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.pages import page_of
from app.db.watching.tables import ScheduleRun
from app.domain.jobs.status import TERMINAL, JobStatus


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of ``schedule_runs``; see :class:`app.db.watching.tables.ScheduleRun`."""

    id: str
    tenant: str
    schedule_id: str
    due: datetime
    state: str
    reason: str | None
    missed: int
    job_id: str | None
    anchor_job_id: str | None
    design: str | None
    value: float | None
    n: int | None
    left_out: int | None
    coverage: float | None
    low: float | None
    high: float | None
    anchor: float | None
    anchor_n: int | None
    anchor_left_out: int | None
    anchor_coverage: float | None
    anchor_low: float | None
    anchor_high: float | None
    anchors: dict[str, float] | None
    alarms: list[dict[str, Any]]
    usd: float | None
    ended_at: datetime | None


UNPAID = ("budget_exhausted", "spending_cap_reached")
"""Why a job is paused that goes on only when somebody raises a limit: its run does not wait for that."""

_RUN = [getattr(ScheduleRun, name) for name in RunRow.__dataclass_fields__]
_IS_ACTIVE = ScheduleRun.state.in_(("due", "running"))


async def insert_run(connection: AsyncConnection, values: Mapping[str, Any]) -> bool:
    """Writes a run for a due time that has none; whether there was none."""
    written = await connection.execute(
        upsert(ScheduleRun)
        .values(dict(values))
        .on_conflict_do_nothing(index_elements=["schedule_id", "due"])
        .returning(ScheduleRun.id)
    )
    return written.first() is not None


_THIN = text(
    "WITH removed AS (DELETE FROM schedule_runs r USING ("
    " SELECT id, row_number() OVER (PARTITION BY date_trunc('day', due, 'UTC') ORDER BY value IS NULL, due DESC) AS place"
    " FROM schedule_runs WHERE tenant = :tenant AND schedule_id = :schedule AND due < ("
    "  SELECT due FROM schedule_runs WHERE schedule_id = :schedule ORDER BY due DESC OFFSET :whole LIMIT 1)) old"
    " WHERE r.id = old.id AND old.place > 1 AND r.alarms = '[]' AND r.ended_at IS NOT NULL RETURNING r.usd)"
    " UPDATE schedules SET removed_usd = removed_usd + (SELECT coalesce(sum(usd), 0) FROM removed)"
    " WHERE tenant = :tenant AND id = :schedule AND EXISTS (SELECT FROM removed)"
)


async def thin(connection: AsyncConnection, tenant: str, schedule_id: str, whole: int) -> None:
    """Keeps a locked schedule's last ``whole`` runs, and of those before them the last one of each day with a value, and the alarms.

    The schedule keeps what the others have cost.
    """
    await connection.execute(_THIN, {"tenant": tenant, "schedule": schedule_id, "whole": whole - 1})


async def is_active(connection: AsyncConnection, schedule_id: str) -> bool:
    """Whether a run of a schedule has not ended."""
    found = select(ScheduleRun.id).where(ScheduleRun.schedule_id == schedule_id, _IS_ACTIVE).limit(1)
    return (await connection.execute(found)).first() is not None


async def list_runs(
    connection: AsyncConnection,
    tenant: str,
    schedule_id: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[RunRow]:
    """A schedule's runs, newest first; ``after`` is (due, id) of the last one of the page before."""
    run = ScheduleRun
    query = select(*_RUN).where(run.tenant == tenant, run.schedule_id == schedule_id)
    query = page_of(query, run.due, run.id, limit=limit, after=after)
    return [RunRow(*row) for row in await connection.execute(query)]


async def last_runs(
    connection: AsyncConnection, tenant: str, schedule_ids: Collection[str]
) -> dict[str, RunRow]:
    """The newest run of each schedule that has one."""
    run = ScheduleRun
    newest = (
        select(run.schedule_id, func.max(run.due))
        .where(run.tenant == tenant, run.schedule_id.in_(schedule_ids))
        .group_by(run.schedule_id)
    )
    rows = await connection.execute(
        select(*_RUN).where(run.tenant == tenant, tuple_(run.schedule_id, run.due).in_(newest))
    )
    return {row.schedule_id: RunRow(*row) for row in rows}


async def measured_runs(
    connection: AsyncConnection, tenant: str, schedule_id: str, design: str, limit: int
) -> list[RunRow]:
    """The last runs of a design that have a figure, oldest first."""
    run = ScheduleRun
    rows = await connection.execute(
        select(*_RUN)
        .where(run.tenant == tenant, run.schedule_id == schedule_id)
        .where(run.design == design, run.value.is_not(None))
        .order_by(run.due.desc())
        .limit(limit)
    )
    return [RunRow(*row) for row in rows][::-1]


async def active_runs(connection: AsyncConnection) -> list[str]:
    """The runs, of all tenants, that have not ended and wait for nothing but us, oldest first."""
    ended = ", ".join(f"'{status}'" for status in sorted(TERMINAL))
    unpaid = ", ".join(f"'{reason}'" for reason in UNPAID)
    rows = await connection.execute(
        text(
            "SELECT r.id FROM schedule_runs r WHERE r.state IN ('due', 'running') AND NOT EXISTS ("
            f" SELECT FROM jobs j WHERE j.id = coalesce(r.job_id, r.anchor_job_id) AND j.status NOT IN ({ended})"
            f" AND coalesce(j.status_reason, '') NOT IN ({unpaid})) ORDER BY r.due"
        )
    )
    return [row.id for row in rows]


async def lock_run(connection: AsyncConnection, run_id: str) -> RunRow | None:
    """A run that has not ended, locked, unless somebody else is at it; whosever it is."""
    rows = await connection.execute(
        select(*_RUN).where(ScheduleRun.id == run_id, _IS_ACTIVE).with_for_update(skip_locked=True)
    )
    row = rows.first()
    return None if row is None else RunRow(*row)


async def change_run(connection: AsyncConnection, run: RunRow, **values: Any) -> None:
    """Changes these columns of a locked run."""
    await connection.execute(
        update(ScheduleRun).where(ScheduleRun.id == run.id, ScheduleRun.tenant == run.tenant).values(values)
    )


class JobState(NamedTuple):
    """Where a run's job stands."""

    status: JobStatus
    reason: str | None


async def job_states(
    connection: AsyncConnection, tenant: str, job_ids: Collection[str]
) -> dict[str, JobState]:
    """The states of a tenant's jobs; nothing of those that are gone."""
    rows = await connection.execute(
        text("SELECT id, status, status_reason FROM jobs WHERE tenant = :tenant AND id = ANY(:jobs)"),
        {"tenant": tenant, "jobs": list(job_ids)},
    )
    return {row.id: JobState(JobStatus(row.status), row.status_reason) for row in rows}
