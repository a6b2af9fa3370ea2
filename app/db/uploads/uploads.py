"""Uploads and their records. A part counts only if it begins where the last one ended, so that nothing is stored twice."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import case, delete, func, insert, make_url, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.pages import page_of
from app.db.uploads.tables import UploadRecord, UploadRow

_LOCK = 0x75706C64
"""Advisory lock, with a hash of the tenant: its uploads are counted by one request at a time."""


_RECORDS_LOCK = 0x75707263
"""Advisory lock, with a hash of the upload: its records are replaced by one request at a time."""


class Held(NamedTuple):
    """What a tenant's uploads hold together."""

    uploads: int
    size: int


async def lock_held(connection: AsyncConnection, tenant: str) -> Held:
    """Return what a tenant's uploads hold together; no other transaction adds to it until this one ends."""
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(:lock, hashtext(:tenant))"), {"lock": _LOCK, "tenant": tenant}
    )
    return await held(connection, tenant)


async def held(connection: AsyncConnection, tenant: str) -> Held:
    """Return what a tenant's uploads hold together."""
    rows = await connection.execute(
        text(
            "SELECT count(*), CAST(coalesce(sum(greatest(size, unpacked)), 0) AS bigint) FROM uploads WHERE tenant = :tenant"
        ),
        {"tenant": tenant},
    )
    return Held(*rows.one())


async def create(connection: AsyncConnection, values: Mapping[str, Any]) -> None:
    """Creates an upload of which nothing has arrived."""
    empty = {"received": 0, "records": 0, "lines": 0, "tail": b"", "skipping": False}
    await connection.execute(insert(UploadRow).values(error_count=0, errors=[], **empty, **values))


async def find(
    connection: AsyncConnection, tenant: str, upload_id: str, *, lock: bool = False
) -> UploadRow | None:
    """An upload; ``None`` if the tenant has none of that id.

    Args:
        connection: Where.
        tenant: Whose.
        upload_id: Its id.
        lock: Whether to keep it until the transaction ends, however many do.
    """
    query = select(*UploadRow.__table__.columns).where(UploadRow.tenant == tenant, UploadRow.id == upload_id)
    rows = await connection.execute(query.with_for_update(read=True) if lock else query)
    row = rows.first()
    return None if row is None else UploadRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


async def keep(connection: AsyncConnection, tenant: str, upload_id: str) -> bool:
    """Sees to it that an upload stays, and that nobody else replaces its records, until the transaction ends; whether there is one.

    Jobs may name it meanwhile, and find the records that it had.
    """
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(:lock, hashtext(:upload))"),
        {"lock": _RECORDS_LOCK, "upload": upload_id},
    )
    query = select(UploadRow.id).where(UploadRow.tenant == tenant, UploadRow.id == upload_id)
    rows = await connection.execute(query.with_for_update(read=True, key_share=True))
    return rows.first() is not None


async def read_page(
    connection: AsyncConnection, tenant: str, *, after: tuple[datetime, str] | None, limit: int
) -> list[UploadRow]:
    """A tenant's uploads, newest first; ``after`` is what the last one of the page before was created at, and its id."""
    query = select(*UploadRow.__table__.columns).where(UploadRow.tenant == tenant)
    newest = page_of(query, UploadRow.created_at, UploadRow.id, limit=limit, after=after)
    return [UploadRow(**row._mapping) for row in await connection.execute(newest)]  # noqa: SLF001


async def advance(
    connection: AsyncConnection, tenant: str, upload_id: str, received: int, values: Mapping[str, Any]
) -> bool:
    """Writes down how far an upload is, if so many bytes of it had been received; whether they had."""
    changed = await connection.execute(
        update(UploadRow)
        .where(UploadRow.tenant == tenant, UploadRow.id == upload_id, UploadRow.received == received)
        .values(**values)
    )
    return changed.rowcount == 1


async def add_records(
    connection: AsyncConnection,
    tenant: str,
    upload_id: str,
    first: int,
    records: Iterable[Mapping[str, Any]],
) -> None:
    """Adds records.

    Args:
        connection: Where.
        tenant: Whose.
        upload_id: Of which upload.
        first: The first one's ordinal.
        records: Their columns beyond these.
    """
    rows = [{"ordinal": n, **record} for n, record in enumerate(records, first)]
    if rows:
        given = {"tenant": tenant, "upload": upload_id, "rows": json.dumps(rows, ensure_ascii=False)}
        await connection.execute(_ADD, given)


_DIALECT = make_url("postgresql+psycopg://").get_dialect()()
_COLUMNS = {
    column.name: column.type.compile(_DIALECT)
    for column in UploadRecord.__table__.columns
    if column.name not in {"tenant", "upload_id"}
}
_ADD = text(
    f"INSERT INTO upload_records (tenant, upload_id, {', '.join(_COLUMNS)})"
    f" SELECT :tenant, :upload, {', '.join(_COLUMNS)} FROM jsonb_to_recordset(CAST(:rows AS jsonb))"
    f" AS given ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})"
)


async def read_records(connection: AsyncConnection, tenant: str, upload_id: str) -> AsyncIterator[Any]:
    """The records of an upload in their order, without their texts."""
    record = UploadRecord
    query = (
        select(
            *(record.ordinal, record.line, record.persona, record.task, record.model, record.item),
            *(record.run, record.instruction, record.question, record.status, record.judged),
            *(func.cardinality(record.unit_starts).label("sentences"), record.notes),
            case((record.notes.is_not(None), record.unit_starts)).label("starts"),
            case((record.notes.is_not(None), record.unit_ends)).label("ends"),
        )
        .where(record.tenant == tenant, record.upload_id == upload_id)
        .order_by(record.ordinal)
    )
    found = await connection.stream(query)
    async for some in found.partitions(1000):
        for row in some:
            yield row


async def drop_records(connection: AsyncConnection, tenant: str, upload_id: str) -> None:
    """Removes the records of an upload."""
    await connection.execute(
        delete(UploadRecord).where(UploadRecord.tenant == tenant, UploadRecord.upload_id == upload_id)
    )


async def remove(connection: AsyncConnection, tenant: str, upload_id: str) -> bool:
    """Removes an upload with its records; whether there was one."""
    removed = await connection.execute(
        delete(UploadRow).where(UploadRow.tenant == tenant, UploadRow.id == upload_id)
    )
    return removed.rowcount == 1


async def remove_expired(connection: AsyncConnection) -> str | None:
    """Removes an expired upload that nobody holds, of whatever tenant; its id, if there was one."""
    rows = await connection.execute(
        text(
            "DELETE FROM uploads WHERE id = (SELECT id FROM uploads WHERE expires_at < clock_timestamp()"
            " ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
        )
    )
    row = rows.first()
    return None if row is None else str(row.id)
