"""API keys: stored as hashes, found by their public prefix, rotated and revoked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    any_,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.budgets import TAKEN_BY_KEY
from app.db.keys.tables import ApiKey
from app.db.pages import page_of

USED_SECONDS = 60
"""How exactly it is noted when a key was last used."""


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A row of ``api_keys`` without its digests."""

    id: str
    tenant: str
    name: str
    scopes: list[str]
    prefix: str
    former_prefix: str | None
    former_expires_at: datetime | None
    requests_per_minute: int | None
    nanos_limit: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    sign_outs: int


@dataclass(frozen=True, slots=True)
class KeyRow(KeptKey):
    """A key with what its jobs took of its cap; ``nanos_taken`` includes what is reserved for calls on their way."""

    nanos_taken: int


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key that may be the one that somebody showed.

    Attributes:
        row: What is known of it.
        digest: HMAC of the whole key that begins with the prefix by which it was found.
        expires_at: When that key ends; ``None`` for never.
    """

    row: KeptKey
    digest: bytes
    expires_at: datetime | None

    def __repr__(self) -> str:
        return f"FoundKey({self.row.id!r})"  # nothing to try keys against in a log


_KEPT = [getattr(ApiKey, field.name) for field in fields(KeptKey)]
_TAKEN: ColumnElement[int] = literal_column(TAKEN_BY_KEY)
_KEY = [*_KEPT, _TAKEN]


async def are_kept(connection: AsyncConnection) -> bool:
    """Whether the database has been migrated so far that it keeps keys."""
    rows = await connection.execute(text("SELECT to_regclass('api_keys') IS NOT NULL"))
    return bool(rows.scalar_one())


async def any_exist(connection: AsyncConnection) -> bool:
    """Whether a key was ever made."""
    if not await are_kept(connection):
        return False
    rows = await connection.execute(text("SELECT EXISTS (SELECT FROM api_keys)"))
    return bool(rows.scalar_one())


async def lacks_pepper(connection: AsyncConnection, name: str) -> bool:
    """Return whether there are valid keys, but none with the pepper of this name."""
    rows = await connection.execute(
        text(
            "SELECT count(*) > 0 AND NOT bool_or(pepper = :name) FROM api_keys"
            " WHERE pepper IS NOT NULL AND revoked_at IS NULL"
            " AND (expires_at IS NULL OR expires_at > now())"
        ),
        {"name": name},
    )
    return bool(rows.scalar_one())


async def insert_key(connection: AsyncConnection, values: Mapping[str, Any]) -> KeyRow:
    """Keeps a key, given all columns without a default."""
    rows = await connection.execute(insert(ApiKey).values(**values).returning(*_KEY))
    return KeyRow(*rows.one())


async def find_by_prefixes(connection: AsyncConnection, prefixes: Collection[str]) -> dict[str, FoundKey]:
    """The keys that begin so, whosever they are, or began so before they were rotated, by how they begin.

    What their jobs took is not summed: requests ask for a key every second, and for its cap where they spend.
    """
    wanted = any_(literal(list(prefixes), ARRAY(Text)))
    rows = await connection.execute(
        select(*_KEPT, ApiKey.digest, ApiKey.former_digest).where(
            or_(ApiKey.prefix == wanted, ApiKey.former_prefix == wanted)
        )
    )
    found: dict[str, FoundKey] = {}
    for values in rows:
        row = KeptKey(*values[: len(_KEPT)])
        found[row.prefix] = FoundKey(row, values.digest, row.expires_at)
        if row.former_prefix is not None:
            ends = [end for end in (row.former_expires_at, row.expires_at) if end is not None]
            found[row.former_prefix] = FoundKey(row, values.former_digest, min(ends))
    return found


async def list_keys(
    connection: AsyncConnection, tenant: str, *, limit: int, after: tuple[datetime, str] | None
) -> list[KeyRow]:
    """Keys, newest first; ``after`` is (created_at, id) of the last one of the page before."""
    query = select(*_KEY).where(ApiKey.tenant == tenant)
    query = page_of(query, ApiKey.created_at, ApiKey.id, limit=limit, after=after)
    return [KeyRow(*row) for row in await connection.execute(query)]


async def get_key(
    connection: AsyncConnection, tenant: str, key_id: str, *, lock: bool = False
) -> KeyRow | None:
    """A tenant's key, if there is one of that id; locked until the transaction ends if asked for."""
    if lock:
        # First, and by itself: what its jobs took is summed of what was committed before the lock was had.
        await connection.execute(
            select(ApiKey.id).where(ApiKey.tenant == tenant, ApiKey.id == key_id).with_for_update()
        )
    rows = await connection.execute(select(*_KEY).where(ApiKey.tenant == tenant, ApiKey.id == key_id))
    found = rows.first()
    return None if found is None else KeyRow(*found)


async def count_as_spent(connection: AsyncConnection, tenant: str, key_id: str, nanos: int) -> None:
    """Takes of a key's cap what another key may spend from now on."""
    await connection.execute(
        update(ApiKey).where(ApiKey.tenant == tenant, ApiKey.id == key_id).values(nanos=ApiKey.nanos + nanos)
    )


async def rotate_key(
    connection: AsyncConnection,
    tenant: str,
    key_id: str,
    prefix: str,
    digest: bytes,
    pepper: str,
    seconds: float,
) -> KeyRow | None:
    """Gives a key that lives another secret; the one before is taken for so many seconds more, and none before that.

    Returns:
        The key; ``None`` if the tenant has none of that id that lives.
    """
    rows = await connection.execute(
        update(ApiKey)
        .where(ApiKey.tenant == tenant, ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
        .where(or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > func.clock_timestamp()))
        .values(
            prefix=prefix,
            digest=digest,
            pepper=pepper,
            former_prefix=ApiKey.prefix,
            former_digest=ApiKey.digest,
            former_expires_at=func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds),
        )
        .returning(*_KEY)
    )
    found = rows.first()
    return None if found is None else KeyRow(*found)


async def change_key(
    connection: AsyncConnection, tenant: str, key_id: str, values: Mapping[str, Any]
) -> KeyRow | None:
    """Changes these columns of a key.

    Returns:
        The key; ``None`` if the tenant has none of that id.
    """
    rows = await connection.execute(
        update(ApiKey).where(ApiKey.tenant == tenant, ApiKey.id == key_id).values(**values).returning(*_KEY)
    )
    found = rows.first()
    return None if found is None else KeyRow(*found)


async def revoke_key(connection: AsyncConnection, tenant: str, key_id: str) -> KeyRow | None:
    """Ends a key for good; the first time counts.

    Returns:
        The key; ``None`` if the tenant has none of that id.
    """
    rows = await connection.execute(
        update(ApiKey)
        .where(ApiKey.tenant == tenant, ApiKey.id == key_id)
        .values(revoked_at=func.coalesce(ApiKey.revoked_at, func.clock_timestamp()))
        .returning(*_KEY)
    )
    found = rows.first()
    return None if found is None else KeyRow(*found)


async def end_sessions(connection: AsyncConnection, tenant: str, key_id: str, sign_outs: int) -> None:
    """Ends a key's sessions that began after so many times of ending them; later ones, of who signed in again, go on."""
    await connection.execute(
        update(ApiKey)
        .where(ApiKey.tenant == tenant, ApiKey.id == key_id, ApiKey.sign_outs == sign_outs)
        .values(sign_outs=ApiKey.sign_outs + 1)
    )


async def note_use(connection: AsyncConnection, key_id: str) -> None:
    """Notes that a key is being used, unless that was noted within the last minute."""
    await connection.execute(
        text(
            "UPDATE api_keys SET last_used_at = clock_timestamp() WHERE id = :key"
            " AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - make_interval(secs => :seconds))"
        ),
        {"key": key_id, "seconds": USED_SECONDS},
    )
