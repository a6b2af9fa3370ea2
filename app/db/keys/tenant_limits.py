"""Tenants' limits, set by the operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, literal_column, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.budgets import TAKEN_BY_TENANT
from app.db.keys.tables import TenantLimits
from app.db.tables import status_list
from app.domain.jobs.status import ACTIVE, TERMINAL


@dataclass(frozen=True, slots=True)
class LimitsRow:
    """A row of ``tenant_limits``; ``nanos_taken`` includes what is reserved for calls on their way."""

    tenant: str
    models: list[str] | None
    nanos_limit: int | None
    nanos_taken: int
    paused: bool


_TAKEN: ColumnElement[int] = literal_column(TAKEN_BY_TENANT)
_LIMITS = select(
    TenantLimits.tenant,
    TenantLimits.models,
    TenantLimits.nanos_limit,
    _TAKEN,
    TenantLimits.paused_at.is_not(None),
)


async def read_limits(connection: AsyncConnection, tenant: str) -> LimitsRow | None:
    """A tenant's limits; ``None`` if it never had any."""
    rows = await connection.execute(_LIMITS.where(TenantLimits.tenant == tenant))
    row = rows.first()
    return None if row is None else LimitsRow(*row)


async def list_limits(connection: AsyncConnection) -> list[LimitsRow]:
    """All tenants' limits, by name."""
    rows = await connection.execute(_LIMITS.order_by(TenantLimits.tenant))
    return [LimitsRow(*row) for row in rows]


async def allowed_models(connection: AsyncConnection, tenant: str) -> list[str] | None:
    """The models that a tenant may use; ``None`` for all."""
    rows = await connection.execute(select(TenantLimits.models).where(TenantLimits.tenant == tenant))
    return rows.scalar_one_or_none()


async def spending_state(connection: AsyncConnection, tenant: str) -> tuple[bool, bool]:
    """Return whether a tenant has a spending cap, and whether it is paused."""
    rows = await connection.execute(
        select(TenantLimits.nanos_limit.is_not(None), TenantLimits.paused_at.is_not(None)).where(
            TenantLimits.tenant == tenant
        )
    )
    row = rows.first()
    return (False, False) if row is None else (row[0], row[1])


_COUNT_UNFINISHED = (
    f"SELECT count(*) FROM jobs WHERE tenant = :tenant AND status NOT IN ({status_list(TERMINAL)})"
)


class Spender(NamedTuple):
    """A tenant that adds a job.

    Attributes:
        capped: Whether it has a spending cap.
        paused: Whether the operator has paused it.
        models: The models that it may use; ``None`` for all.
        unfinished: Number of its unfinished jobs.
    """

    capped: bool
    paused: bool
    models: Sequence[str] | None
    unfinished: int


async def find_spender(connection: AsyncConnection, tenant: str) -> Spender:
    """Return a tenant's limits and unfinished jobs in one query."""
    rows = await connection.execute(
        text(
            f"SELECT l.nanos_limit IS NOT NULL, l.paused_at IS NOT NULL, l.models, ({_COUNT_UNFINISHED})"
            " FROM (SELECT) always LEFT JOIN tenant_limits l ON l.tenant = :tenant"
        ),
        {"tenant": tenant},
    )
    return Spender(*rows.one())


async def count_unfinished(connection: AsyncConnection, tenant: str) -> int:
    """Count a tenant's unfinished jobs."""
    rows = await connection.execute(text(_COUNT_UNFINISHED), {"tenant": tenant})
    return int(rows.scalar_one())


async def active_jobs(connection: AsyncConnection, tenant: str) -> list[str]:
    """Return the ids of a tenant's jobs that may make calls, oldest first."""
    rows = await connection.execute(
        text(
            f"SELECT id FROM jobs WHERE tenant = :tenant AND status IN ({status_list(ACTIVE)}) ORDER BY created_at"
        ),
        {"tenant": tenant},
    )
    return [row.id for row in rows]


async def write_limits(connection: AsyncConnection, tenant: str, values: Mapping[str, Any]) -> None:
    """Sets these columns of a tenant's limits; the others stay."""
    insert = postgresql.insert(TenantLimits).values(tenant=tenant, **values)
    if values:
        kept = insert.on_conflict_do_update(index_elements=["tenant"], set_=dict(values))
    else:
        kept = insert.on_conflict_do_nothing()
    await connection.execute(kept)


async def set_paused(connection: AsyncConnection, tenant: str, *, paused: bool) -> None:
    """Note that a tenant is paused from now on, or no longer."""
    await write_limits(connection, tenant, {"paused_at": func.clock_timestamp() if paused else None})


async def count_uncapped(connection: AsyncConnection, tenant: str) -> int:
    """How many of a tenant's jobs have not ended and spend nothing of its cap, since they were submitted before it had one."""
    rows = await connection.execute(
        text(
            "SELECT count(*) FROM jobs j WHERE tenant = :tenant"
            f" AND status NOT IN ({status_list(TERMINAL)})"
            " AND NOT EXISTS (SELECT FROM budgets b WHERE b.job_id = j.id AND b.under_tenant)"
        ),
        {"tenant": tenant},
    )
    return int(rows.scalar_one())
