"""Baselines of a tenant's own: models of jobs, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import Job, NamedBaseline


@dataclass(frozen=True, slots=True)
class NamedBaselineRow:
    """A row of ``named_baselines``."""

    name: str
    job_id: str
    model: str
    created_at: datetime


_ROW = [getattr(NamedBaseline, name) for name in NamedBaselineRow.__slots__]


async def keep(connection: AsyncConnection, tenant: str, name: str, job_id: str, model: str) -> None:
    """Gives a model of a job, which the caller has locked, a name; what had the name before loses it."""
    values = {"job_id": job_id, "model": model, "created_at": func.now()}
    statement = insert(NamedBaseline).values(tenant=tenant, name=name, **values)
    await connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "name"], set_=values))


async def find(connection: AsyncConnection, tenant: str, name: str) -> NamedBaselineRow | None:
    """What has a name."""
    rows = await connection.execute(
        select(*_ROW).where(NamedBaseline.tenant == tenant, NamedBaseline.name == name)
    )
    row = rows.first()
    return None if row is None else NamedBaselineRow(*row)


async def list_all(connection: AsyncConnection, tenant: str) -> Sequence[tuple[NamedBaselineRow, str | None]]:
    """All of a tenant's, by name, each with the name of its job."""
    rows = await connection.execute(
        select(*_ROW, Job.name)
        .join(Job, Job.id == NamedBaseline.job_id)
        .where(NamedBaseline.tenant == tenant, Job.tenant == tenant)
        .order_by(NamedBaseline.name)
    )
    return [(NamedBaselineRow(*row), name) for *row, name in rows]


async def names_of_job(connection: AsyncConnection, tenant: str, job_id: str) -> list[str]:
    """The names that a job's models have."""
    rows = await connection.execute(
        select(NamedBaseline.name)
        .where(NamedBaseline.tenant == tenant, NamedBaseline.job_id == job_id)
        .order_by(NamedBaseline.name)
    )
    return list(rows.scalars())


async def count(connection: AsyncConnection, tenant: str) -> int:
    """How many a tenant has."""
    rows = await connection.execute(select(func.count()).where(NamedBaseline.tenant == tenant))
    return int(rows.scalar_one())


async def rename(connection: AsyncConnection, tenant: str, name: str, new: str) -> bool:
    """Gives one another name, which none has; whether there was one."""
    rows = await connection.execute(
        update(NamedBaseline)
        .where(NamedBaseline.tenant == tenant, NamedBaseline.name == name)
        .values(name=new)
        .returning(NamedBaseline.name)
    )
    return rows.first() is not None


async def remove(connection: AsyncConnection, tenant: str, name: str) -> bool:
    """Takes a name away; whether anything had it. The job stays."""
    rows = await connection.execute(
        delete(NamedBaseline)
        .where(NamedBaseline.tenant == tenant, NamedBaseline.name == name)
        .returning(NamedBaseline.name)
    )
    return rows.first() is not None
