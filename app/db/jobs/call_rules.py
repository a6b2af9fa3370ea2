"""The stored facts on which it depends whether a job may call its models."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


class CallFacts(NamedTuple):
    """The limits that a job's calls have to keep today.

    Attributes:
        imported: Whether the job came as a bundle, so that another installation wrote its specification.
        in_dollars: Whether the job, its API key or its tenant has a limit in US dollars.
        preparing: Whether a preparation is unfinished.
        models: The models that the operator allows the tenant; ``None`` for all.
        paused: Whether the operator has paused the tenant.
    """

    imported: bool
    in_dollars: bool
    preparing: bool
    models: Sequence[str] | None
    paused: bool


async def read_facts(connection: AsyncConnection, tenant: str, job_id: str) -> CallFacts | None:
    """Return the facts of a job; ``None`` if there is no such job."""
    rows = await connection.execute(
        text(
            "SELECT j.imported_from IS NOT NULL, num_nonnulls(b.nanos_limit, k.nanos_limit,"
            " CASE WHEN b.under_tenant THEN l.nanos_limit END) > 0,"
            " EXISTS (SELECT FROM shards WHERE job_id = j.id AND kind = 'preparation' AND NOT done), l.models,"
            " l.paused_at IS NOT NULL"
            " FROM jobs j LEFT JOIN budgets b ON b.job_id = j.id LEFT JOIN api_keys k ON k.id = b.key_id"
            " LEFT JOIN tenant_limits l ON l.tenant = j.tenant WHERE j.id = :job AND j.tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
    row = rows.first()
    return None if row is None else CallFacts(*row)
