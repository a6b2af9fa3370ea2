"""Share links: kept as hashes, found by them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import ShareLink


@dataclass(frozen=True, slots=True)
class ShareLinkRow:
    """A row of ``share_links`` without its digest."""

    id: str
    tenant: str
    job_id: str
    description: str | None
    responses: bool
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


_LINK = [getattr(ShareLink, name) for name in ShareLinkRow.__slots__]


async def insert_link(connection: AsyncConnection, values: dict[str, Any], days: int) -> ShareLinkRow:
    """Keeps a link that works for so many days."""
    ends = func.now() + func.make_interval(0, 0, 0, days)
    rows = await connection.execute(insert(ShareLink).values(**values, expires_at=ends).returning(*_LINK))
    return ShareLinkRow(*rows.one())


async def find_link(connection: AsyncConnection, digest: bytes) -> ShareLinkRow | None:
    """The link of a token, whosever it is, if it works."""
    rows = await connection.execute(
        select(*_LINK).where(
            ShareLink.digest == digest,
            ShareLink.revoked_at.is_(None),
            ShareLink.expires_at > func.clock_timestamp(),
        )
    )
    row = rows.first()
    return None if row is None else ShareLinkRow(*row)


async def list_links(connection: AsyncConnection, tenant: str, job_id: str, limit: int) -> list[ShareLinkRow]:
    """A job's newest links."""
    rows = await connection.execute(
        select(*_LINK)
        .where(ShareLink.tenant == tenant, ShareLink.job_id == job_id)
        .order_by(ShareLink.created_at.desc(), ShareLink.id.desc())
        .limit(limit)
    )
    return [ShareLinkRow(*row) for row in rows]


async def count_live(connection: AsyncConnection, tenant: str, job_id: str) -> int:
    """How many of a job's links work."""
    rows = await connection.execute(
        select(func.count()).where(
            ShareLink.tenant == tenant,
            ShareLink.job_id == job_id,
            ShareLink.revoked_at.is_(None),
            ShareLink.expires_at > func.now(),
        )
    )
    return int(rows.scalar_one())


async def revoke_link(
    connection: AsyncConnection, tenant: str, job_id: str, link_id: str
) -> ShareLinkRow | None:
    """Ends a link for good; the first time counts. ``None`` if the job has none of that id."""
    rows = await connection.execute(
        update(ShareLink)
        .where(ShareLink.tenant == tenant, ShareLink.job_id == job_id, ShareLink.id == link_id)
        .values(revoked_at=func.coalesce(ShareLink.revoked_at, func.clock_timestamp()))
        .returning(*_LINK)
    )
    row = rows.first()
    return None if row is None else ShareLinkRow(*row)
