"""The connections that were made over the API."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.providers.tables import KeptConnection
from app.domain.providers.model import ConnectionKind


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A row of ``connections``; its key is encrypted."""

    version: str
    tenant: str
    name: str
    is_current: bool
    kind: ConnectionKind
    base_url: str
    sealed_key: str | None
    key_hint: str | None
    limits: dict[str, Any]
    prices: dict[str, Any]
    models: list[str] | None
    batches: bool
    stream: bool
    families: dict[str, str]
    description: str | None
    created_at: datetime
    updated_at: datetime


_COLUMNS = [getattr(KeptConnection, name) for name in ConnectionRow.__slots__]
_NOW = text("clock_timestamp()")


def _of(tenant: str, name: str) -> Any:
    return (KeptConnection.tenant == tenant) & (KeptConnection.name == name)


async def insert_version(connection: AsyncConnection, values: Mapping[str, Any]) -> bool:
    """Keeps a version, unless the name has a current one; whether it is kept."""
    kept = await connection.execute(
        postgresql.insert(KeptConnection)
        .values(dict(values))
        .on_conflict_do_nothing()
        .returning(KeptConnection.version)
    )
    return kept.first() is not None


async def list_current(connection: AsyncConnection, tenant: str) -> list[ConnectionRow]:
    """A tenant's connections by name."""
    query = select(*_COLUMNS).where(KeptConnection.tenant == tenant, KeptConnection.is_current)
    return [ConnectionRow(*row) for row in await connection.execute(query.order_by(KeptConnection.name))]


async def list_versions(connection: AsyncConnection, tenant: str, name: str) -> list[ConnectionRow]:
    """All versions of a connection, the current one first; none if there is no such connection."""
    query = select(*_COLUMNS).where(_of(tenant, name))
    newest_first = query.order_by(KeptConnection.is_current.desc(), KeptConnection.created_at.desc())
    return [ConnectionRow(*row) for row in await connection.execute(newest_first)]


async def change_version(connection: AsyncConnection, version: str, values: Mapping[str, Any]) -> None:
    """Changes these columns of a version."""
    changed = update(KeptConnection).where(KeptConnection.version == version)
    await connection.execute(changed.values({**values, "updated_at": _NOW}))


async def delete_versions(connection: AsyncConnection, versions: Sequence[str]) -> None:
    """Removes versions."""
    await connection.execute(delete(KeptConnection).where(KeptConnection.version.in_(versions)))


async def delete_connection(connection: AsyncConnection, tenant: str, name: str) -> bool:
    """Removes a connection with all its versions and keys; whether there was one."""
    removed = await connection.execute(
        delete(KeptConnection).where(_of(tenant, name)).returning(KeptConnection.version)
    )
    return removed.first() is not None


async def find_version(connection: AsyncConnection, tenant: str, version: str) -> ConnectionRow | None:
    """A tenant's version, current or not."""
    query = select(*_COLUMNS).where(KeptConnection.tenant == tenant, KeptConnection.version == version)
    row = (await connection.execute(query)).first()
    return None if row is None else ConnectionRow(*row)


# -- for workers and the sweeper, which act for all tenants ----------------------------------------------------------------


async def changed_at(connection: AsyncConnection, versions: Collection[str]) -> dict[str, datetime]:
    """When each of these versions was last changed; those that are gone are left out."""
    query = select(KeptConnection.version, KeptConnection.updated_at).where(
        KeptConnection.version.in_(versions)
    )
    return {row.version: row.updated_at for row in await connection.execute(query)}


async def lock_sealed(connection: AsyncConnection) -> list[ConnectionRow]:
    """All versions that have a key, for as long as the transaction lasts."""
    query = select(*_COLUMNS).where(KeptConnection.sealed_key.is_not(None)).with_for_update()
    return [ConnectionRow(*row) for row in await connection.execute(query)]


async def encryption_key_names(connection: AsyncConnection) -> set[str]:
    """Return the names of the encryption keys that stored secrets, of connections and webhooks, were encrypted with."""
    rows = await connection.execute(
        text(
            "SELECT DISTINCT split_part(sealed, '.', 2) FROM ("
            " SELECT sealed_key FROM connections UNION ALL SELECT secret FROM webhooks) AS secrets (sealed)"
            r" WHERE sealed ~ '^1\.[0-9a-f]{12}\.'"  # a webhook's secret may be stored as it is
        )
    )
    return set(rows.scalars())
