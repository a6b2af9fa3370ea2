"""Tenants' limits, set by the operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, literal_column, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.budgets import TAKEN_BY_TENANT
from app.db.keys.tables import TenantLimits
from app.db.tables import status_list
from app.domain.jobs.status import TERMINAL


@dataclass(frozen=True, slots=True)
class LimitsRow:
    """A row of ``tenant_limits``; ``nanos_taken`` includes what is reserved for calls on their way."""

    tenant: str
    models: list[str] | None
    nanos_limit: int | None
    nanos_taken: int


_TAKEN: ColumnElement[int] = literal_column(TAKEN_BY_TENANT)
_LIMITS = select(TenantLimits.tenant, TenantLimits.models, TenantLimits.nanos_limit, _TAKEN)


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


async def is_capped(connection: AsyncConnection, tenant: str) -> bool:
    """Whether a tenant has a spending cap."""
    rows = await connection.execute(
        select(TenantLimits.nanos_limit.is_not(None)).where(TenantLimits.tenant == tenant)
    )
    return bool(rows.scalar_one_or_none())


async def write_limits(connection: AsyncConnection, tenant: str, values: Mapping[str, Any]) -> None:
    """Sets these columns of a tenant's limits; the others stay."""
    insert = postgresql.insert(TenantLimits).values(tenant=tenant, **values)
    if values:
        kept = insert.on_conflict_do_update(index_elements=["tenant"], set_=dict(values))
    else:
        kept = insert.on_conflict_do_nothing()
    await connection.execute(kept)


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
