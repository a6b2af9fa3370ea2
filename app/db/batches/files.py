"""Batch files at providers: recorded before they are uploaded, so that none is left behind."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

ANNOUNCED_SECONDS = 60.0
"""How long a file that was announced may take to be deleted before it is announced again."""

MOST_DUE = 100
"""Files that are announced at a time."""


@dataclass(frozen=True, slots=True)
class UnneededFile:
    """A file that a provider may have and nobody needs.

    Attributes:
        id: Of its row, which is in its name.
        tenant: Whose batch it was.
        connection: Where it is.
        file_id: Its id there, if that is known.
        made_at: When its upload was begun.
        age: Seconds since then.
        failures: How often the provider could not be asked to delete it.
    """

    id: UUID
    tenant: str
    connection: str
    file_id: str | None
    made_at: datetime
    age: float
    failures: int


async def begin(connection: AsyncConnection, batch_id: int, file_id: UUID) -> None:
    """Notes, before the upload, that the provider may have a file with a batch's calls; a former one is needed no more.

    The caller holds the batch's lease.
    """
    await release(connection, batch_id)
    await connection.execute(
        text(
            "INSERT INTO batch_files (id, tenant, connection, batch_id)"
            " SELECT :id, tenant, connection, id FROM batches WHERE id = :batch"
        ),
        {"id": file_id, "batch": batch_id},
    )


async def tenant_of(connection: AsyncConnection, id_: UUID) -> str | None:
    """Return the tenant of a file."""
    rows = await connection.execute(text("SELECT tenant FROM batch_files WHERE id = :id"), {"id": id_})
    return rows.scalar_one_or_none()


async def uploaded(connection: AsyncConnection, id_: UUID, file_id: str) -> None:
    """Keeps the id that a file has at the provider."""
    await connection.execute(
        text("UPDATE batch_files SET file_id = :file WHERE id = :id"), {"id": id_, "file": file_id}
    )


async def release(connection: AsyncConnection, batch_id: int) -> None:
    """Has a batch's files deleted: it needs them no more."""
    await connection.execute(
        text("UPDATE batch_files SET batch_id = NULL WHERE batch_id = :batch"), {"batch": batch_id}
    )


async def forget(connection: AsyncConnection, id_: UUID) -> None:
    """Drops the note of a file that is not there."""
    await connection.execute(text("DELETE FROM batch_files WHERE id = :id"), {"id": id_})


async def due(connection: AsyncConnection) -> list[UUID]:
    """Some files that somebody should delete now, each at most once in :data:`ANNOUNCED_SECONDS`."""
    rows = await connection.execute(
        text(
            "UPDATE batch_files SET due_at = clock_timestamp() + make_interval(secs => :seconds) WHERE id IN ("
            " SELECT id FROM batch_files WHERE batch_id IS NULL AND due_at <= clock_timestamp()"
            " ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED) RETURNING id"
        ),
        {"seconds": ANNOUNCED_SECONDS, "most": MOST_DUE},
    )
    return [row.id for row in rows]


async def unneeded(connection: AsyncConnection, id_: UUID) -> UnneededFile | None:
    """A file to be deleted; ``None`` if that has been done, or it is needed."""
    rows = await connection.execute(
        text(
            "SELECT id, tenant, connection, file_id, made_at,"
            " EXTRACT(epoch FROM clock_timestamp() - made_at)::float8 AS age, failures"
            " FROM batch_files WHERE id = :id AND batch_id IS NULL"
        ),
        {"id": id_},
    )
    row = rows.first()
    return None if row is None else UnneededFile(*row)


async def put_off(connection: AsyncConnection, id_: UUID, seconds: float) -> None:
    """Has a file's deletion tried again in some seconds."""
    await connection.execute(
        text(
            "UPDATE batch_files SET failures = failures + 1,"
            " due_at = clock_timestamp() + make_interval(secs => :seconds) WHERE id = :id"
        ),
        {"id": id_, "seconds": seconds},
    )
