"""Flags on sentences and responses."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.labels.tables import FlagRow
from app.db.pages import page_of

_COLUMNS = FlagRow.__table__.columns
_SUBJECT = ("job_id", "cell", "run", "item", "unit", "annotator")
_CHANGED = ("dimension", "score", "not_applicable", "note")


async def keep(connection: AsyncConnection, values: dict[str, Any]) -> FlagRow:
    """Keeps a flag, in place of the same annotator's earlier one on the same."""
    new = upsert(FlagRow).values(**values)
    changed = {name: getattr(new.excluded, name) for name in _CHANGED}
    rows = await connection.execute(
        new.on_conflict_do_update(
            index_elements=_SUBJECT, set_=changed | {"updated_at": func.clock_timestamp()}
        ).returning(*_COLUMNS)
    )
    return _flag(rows.one())


async def count(connection: AsyncConnection, tenant: str, job_id: str) -> int:
    """How many flags a job has."""
    rows = await connection.execute(
        select(func.count()).where(FlagRow.tenant == tenant, FlagRow.job_id == job_id)
    )
    return int(rows.scalar_one())


async def read_page(
    connection: AsyncConnection,
    tenant: str,
    job_id: str | None,
    *,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[FlagRow]:
    """A tenant's flags, or those of a job, newest first; ``after`` is what the last one of the page before was created at, and its id."""
    query = select(*_COLUMNS).where(FlagRow.tenant == tenant)
    if job_id is not None:
        query = query.where(FlagRow.job_id == job_id)
    newest = page_of(query, FlagRow.created_at, FlagRow.id, limit=limit, after=after)
    return [_flag(row) for row in await connection.execute(newest)]


async def at(
    connection: AsyncConnection, tenant: str, job_id: str, responses: Sequence[tuple[int, int, int]]
) -> list[FlagRow]:
    """The flags on these responses, by cell, run and item, and on their sentences, in the texts' order."""
    place = tuple_(FlagRow.cell, FlagRow.run, FlagRow.item)
    rows = await connection.execute(
        select(*_COLUMNS)
        .where(FlagRow.tenant == tenant, FlagRow.job_id == job_id, place.in_(responses))
        .order_by(FlagRow.cell, FlagRow.run, FlagRow.item, FlagRow.unit.nulls_first(), FlagRow.id)
    )
    return [_flag(row) for row in rows]


async def remove(connection: AsyncConnection, tenant: str, id_: str) -> FlagRow | None:
    """Removes a flag; ``None`` if the tenant has none of that id."""
    rows = await connection.execute(
        delete(FlagRow).where(FlagRow.tenant == tenant, FlagRow.id == id_).returning(*_COLUMNS)
    )
    row = rows.first()
    return None if row is None else _flag(row)


def _flag(row: Row[Any]) -> FlagRow:
    return FlagRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
