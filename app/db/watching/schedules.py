"""Schedules: keeping, finding and changing them, and what is due."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.pages import page_of
from app.db.watching.tables import Schedule, ScheduleRun


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A row of ``schedules``; see :class:`app.db.watching.tables.Schedule`."""

    id: str
    tenant: str
    name: str | None
    cron: str
    time_zone: str
    job: dict[str, Any]
    figure: str
    anchors: dict[str, Any] | None
    run_usd: float | None
    total_usd: float | None
    key_id: str | None
    paused_reason: str | None
    next_due: datetime | None
    put_off_until: datetime | None
    simulated: bool
    created_at: datetime
    updated_at: datetime


_SCHEDULE = [getattr(Schedule, name) for name in ScheduleRow.__dataclass_fields__]


async def insert_schedule(connection: AsyncConnection, values: Mapping[str, Any]) -> None:
    """Keeps a new schedule."""
    await connection.execute(insert(Schedule).values(dict(values)))


async def count_schedules(connection: AsyncConnection, tenant: str) -> int:
    """How many a tenant has."""
    return int((await connection.execute(select(func.count()).where(Schedule.tenant == tenant))).scalar_one())


async def get_schedule(
    connection: AsyncConnection, tenant: str, schedule_id: str, *, lock: bool = False
) -> ScheduleRow | None:
    """A tenant's schedule, if there is one of that id; locked until the transaction ends if that is wanted."""
    query = select(*_SCHEDULE).where(Schedule.tenant == tenant, Schedule.id == schedule_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).first()
    return None if row is None else ScheduleRow(*row)


async def list_schedules(
    connection: AsyncConnection, tenant: str, *, limit: int, after: tuple[datetime, str] | None
) -> list[ScheduleRow]:
    """A tenant's schedules, newest first; ``after`` is (created_at, id) of the last one of the page before."""
    query = select(*_SCHEDULE).where(Schedule.tenant == tenant)
    query = page_of(query, Schedule.created_at, Schedule.id, limit=limit, after=after)
    return [ScheduleRow(*row) for row in await connection.execute(query)]


async def change_schedule(
    connection: AsyncConnection, tenant: str, schedule_id: str, values: Mapping[str, Any]
) -> None:
    """Changes these columns of a schedule."""
    await connection.execute(
        update(Schedule)
        .where(Schedule.tenant == tenant, Schedule.id == schedule_id)
        .values({**values, "updated_at": text("clock_timestamp()")})
    )


async def delete_schedule(connection: AsyncConnection, tenant: str, schedule_id: str) -> bool:
    """Removes a schedule with its runs; whether there was one of that id. Their jobs stay."""
    removed = await connection.execute(
        delete(Schedule).where(Schedule.tenant == tenant, Schedule.id == schedule_id).returning(Schedule.id)
    )
    return removed.first() is not None


async def lock_due(connection: AsyncConnection) -> tuple[ScheduleRow, datetime] | None:
    """The schedule, of any tenant, that is due for longest, locked, and what time it is; of those that nobody else is at."""
    row = (
        await connection.execute(
            select(func.clock_timestamp(), *_SCHEDULE)
            .where(Schedule.next_due <= func.clock_timestamp())
            .where(func.coalesce(Schedule.put_off_until, Schedule.next_due) <= func.clock_timestamp())
            .order_by(Schedule.next_due)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
    ).first()
    return None if row is None else (ScheduleRow(*row[1:]), row[0])


async def set_next_due(
    connection: AsyncConnection, schedule: ScheduleRow, due: datetime | None, paused_reason: str | None = None
) -> None:
    """Says when a locked schedule is due next, or why it is paused."""
    await connection.execute(
        update(Schedule)
        .where(Schedule.id == schedule.id, Schedule.tenant == schedule.tenant)
        .values(next_due=due, paused_reason=paused_reason, put_off_until=None)
    )


async def pause(connection: AsyncConnection, schedule: ScheduleRow, reason: str) -> None:
    """Pauses a schedule, unless it is."""
    await connection.execute(
        update(Schedule)
        .where(Schedule.id == schedule.id, Schedule.tenant == schedule.tenant)
        .where(Schedule.paused_reason.is_(None))
        .values(next_due=None, paused_reason=reason)
    )


async def note_simulated(connection: AsyncConnection, schedule: ScheduleRow) -> None:
    """Notes that one of a schedule's jobs is simulated; the jobs may be deleted."""
    await connection.execute(
        update(Schedule)
        .where(Schedule.id == schedule.id, Schedule.tenant == schedule.tenant)
        .where(Schedule.simulated.is_(False))
        .values(simulated=True)
    )


async def put_off(connection: AsyncConnection, schedule: ScheduleRow, until: datetime) -> None:
    """Has a locked schedule left alone until then; it stays due."""
    await connection.execute(
        update(Schedule)
        .where(Schedule.id == schedule.id, Schedule.tenant == schedule.tenant)
        .values(put_off_until=until)
    )


async def spent(connection: AsyncConnection, tenant: str, schedule_ids: Collection[str]) -> dict[str, float]:
    """What schedules' runs that have ended have cost, in US dollars."""
    kept = select(func.coalesce(func.sum(ScheduleRun.usd), 0.0)).where(
        ScheduleRun.tenant == tenant, ScheduleRun.schedule_id == Schedule.id
    )
    rows = await connection.execute(
        select(Schedule.id, (Schedule.removed_usd + kept.scalar_subquery()).label("usd")).where(
            Schedule.tenant == tenant, Schedule.id.in_(schedule_ids)
        )
    )
    return {row.id: row.usd for row in rows}


async def has_key_ended(connection: AsyncConnection, tenant: str, key_id: str) -> bool:
    """Whether an API key was revoked or has expired."""
    rows = await connection.execute(
        text(
            "SELECT NOT EXISTS (SELECT FROM api_keys WHERE tenant = :tenant AND id = :key AND revoked_at IS NULL"
            " AND (expires_at IS NULL OR expires_at > clock_timestamp()))"
        ),
        {"tenant": tenant, "key": key_id},
    )
    return bool(rows.scalar_one())


async def is_capped(connection: AsyncConnection, tenant: str, key_id: str) -> bool:
    """Whether there is a cap on what an API key's jobs spend."""
    rows = await connection.execute(
        text("SELECT nanos_limit IS NOT NULL FROM api_keys WHERE tenant = :tenant AND id = :key"),
        {"tenant": tenant, "key": key_id},
    )
    return bool(rows.scalar_one_or_none())
