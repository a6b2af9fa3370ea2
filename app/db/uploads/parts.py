"""Bytes of uploads that can be read only once all of them are there."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.uploads.tables import UploadPart, UploadRow

LEASE_SECONDS = 10
"""The reader of an upload renews its claim with each piece; if its process dies, another one takes over after this time."""


async def add(connection: AsyncConnection, tenant: str, upload_id: str, start: int, data: bytes) -> None:
    """Keeps a part."""
    key = {"upload_id": upload_id, "start": start}
    await connection.execute(insert(UploadPart).values(tenant=tenant, size=len(data), data=data, **key))


async def read(connection: AsyncConnection, tenant: str, upload_id: str, start: int, size: int) -> bytes:
    """So many of the bytes from a place on; fewer where they end, or have been removed."""
    rows = await connection.execute(
        text(
            "SELECT substr(data, CAST(greatest(:start - start, 0) + 1 AS int),"
            "  CAST(least(start + size, :stop) - greatest(start, :start) AS int)) FROM upload_parts"
            " WHERE tenant = :tenant AND upload_id = :upload AND start < :stop AND start + size > :start"
            " AND start >= (SELECT max(start) FROM upload_parts WHERE upload_id = :upload AND start <= :start)"
            " ORDER BY upload_parts.start"
        ),
        {"tenant": tenant, "upload": upload_id, "start": start, "stop": start + size},
    )
    return b"".join(rows.scalars())


async def claim(connection: AsyncConnection, tenant: str, upload_id: str) -> bool:
    """Takes it on to read an upload, if it is complete and nobody else is at it; whether it is so."""
    claimed = await connection.execute(
        text(
            "UPDATE uploads SET reading_until = clock_timestamp() + make_interval(secs => :seconds)"
            " WHERE tenant = :tenant AND id = :upload AND status = 'reading'"
            " AND coalesce(reading_until, '-infinity') < clock_timestamp()"
        ),
        {"tenant": tenant, "upload": upload_id, "seconds": LEASE_SECONDS},
    )
    return claimed.rowcount == 1


async def advance(
    connection: AsyncConnection, tenant: str, upload_id: str, unpacked: int, values: Mapping[str, Any]
) -> bool:
    """Writes down how far an upload is read, if it was read so far before; whether it was."""
    until = text(f"clock_timestamp() + interval '{LEASE_SECONDS} seconds'")
    changed = await connection.execute(
        update(UploadRow)
        .where(UploadRow.tenant == tenant, UploadRow.id == upload_id, UploadRow.status == "reading")
        .where(UploadRow.unpacked == unpacked)
        .values(reading_until=until, **values)
    )
    return changed.rowcount == 1


async def release(connection: AsyncConnection, tenant: str, upload_id: str) -> None:
    """Lets somebody else go on with reading an upload."""
    of_it = (UploadRow.tenant == tenant, UploadRow.id == upload_id)
    await connection.execute(update(UploadRow).where(*of_it).values(reading_until=None))


async def drop(connection: AsyncConnection, tenant: str, upload_id: str) -> None:
    """Removes the parts of an upload."""
    of_it = (UploadPart.tenant == tenant, UploadPart.upload_id == upload_id)
    await connection.execute(delete(UploadPart).where(*of_it))
