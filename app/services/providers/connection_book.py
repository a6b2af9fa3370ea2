"""The connections that a process knows: the operator's, and those of tenants loaded so far."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.health import is_away
from app.db.keys import tenant_limits
from app.db.providers import connections as kept
from app.db.providers.connections import ConnectionRow
from app.guard.targets import PORTS, Guard
from app.llm.connections.connections import (
    Connection,
    ConnectionLimits,
    Connections,
    ModelPrices,
    key_of,
)
from app.ports import FailureKind, ModelCallError
from app.telemetry.vital import vital_tasks
from app.vault.secret_cipher import SealError, SecretCipher

log = structlog.get_logger(__name__)

REFRESH_SECONDS = 3.0
"""How often a process that uses tenants' connections looks whether one of them was changed or removed."""

_MARK = "@"
"""Stands between a name and a version; no name has it."""


def reference(row: ConnectionRow) -> str:
    """How jobs name a version of a connection: an operator's name never looks like that."""
    return f"{row.name}{_MARK}{row.version}"


def name_in(reference: str) -> str:
    """The name of the connection that a job keeps by a reference, or by the name itself."""
    return reference.partition(_MARK)[0]


def is_of_tenant(connection: str) -> bool:
    """Whether a connection, by the name that jobs keep, is a tenant's own, which no other can name."""
    return _MARK in connection


def binding(tenant: str, version: str, base_url: str) -> str:
    """What a key is bound to when it is encrypted: it can't be read for another tenant, version, scheme, host or port."""
    return "\n".join((tenant, version, origin(base_url)))


def origin(base_url: str) -> str:
    """Scheme, host and port of a URL: where its key may be sent."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or PORTS[parts.scheme]}"


class ConnectionBook:
    """Looks connections up; belongs to one event loop.

    Args:
        engine: The database.
        operator: The operator's connections, which are found first. Those that are met are kept with them.
        guard: Says where tenants' connections may lead.
        ring: Reads their keys.
    """

    def __init__(self, engine: AsyncEngine, operator: Connections, guard: Guard, ring: SecretCipher) -> None:
        self._engine = engine
        self._operator = operator
        self._guard = guard
        self._ring = ring
        self._changed_at: dict[str, datetime] = {}

    async def of_tenant(self, tenant: str) -> Connections:
        """The connections that a tenant's jobs can name, without the tenant's own keys; the operator's take precedence.

        From now on prices and limits are known by the names that jobs store.
        """
        async with self._engine.connect() as connection:
            rows = await kept.list_current(connection, tenant)
            allowed = await tenant_limits.allowed_models(connection, tenant)
        own = {row.name: self._connection(row, None) for row in rows}
        for found in own.values():
            self._operator.learn(found)
        return replace(
            self._operator,
            by_id=own | dict(self._operator.by_id),
            allowed=None if allowed is None else tuple(allowed),
        )

    async def fetch(self, name: str, tenant: str) -> Connection | None:
        """A version of a tenant's connection with its key, by the name that his job keeps; ``None`` if he has none.

        Raises:
            ModelCallError: If its key can't be read.
        """
        row = await self._version(name, tenant)
        return None if row is None else self._learn(row)

    def _learn(self, row: ConnectionRow) -> Connection:
        found = self._connection(row, self._key(row))
        self._operator.learn(found)
        self._changed_at[found.id] = row.updated_at
        return found

    async def usable(self, connection: AsyncConnection, name: str, tenant: str) -> Connection | None:
        """Return the connection of the name that a tenant's job keeps, as it is now; ``None`` if it no longer exists.

        Raises:
            ModelCallError: If its key can't be read.
        """
        if not is_of_tenant(name):
            return self._operator.by_id.get(name)
        row = await _find_version(connection, name, tenant)
        if row is None:
            return None
        if self._operator.get(name) is None:  # prices and calls look it up by this name
            self._learn(row)
        return self._connection(row, None)

    async def with_key(self, name: str, tenant: str) -> Connection | None:
        """The same, without keeping it in mind: for a single call.

        Raises:
            ModelCallError: If its key can't be read.
        """
        row = await self._version(name, tenant)
        return None if row is None else self._connection(row, self._key(row))

    async def _version(self, name: str, tenant: str) -> ConnectionRow | None:
        if not is_of_tenant(name):
            return None
        async with self._engine.connect() as connection:
            return await _find_version(connection, name, tenant)

    async def refresh(self) -> list[str]:
        """Fetches what was changed since it was fetched, forgets what was removed, and names both.

        What the connections no longer keep in mind is named as well: nothing else is to be kept of it.
        """
        if not self._changed_at:
            return []
        versions = {name.partition(_MARK)[2]: name for name in self._changed_at}
        async with self._engine.connect() as connection:
            now = await kept.changed_at(connection, list(versions))
        stale = [
            name
            for version, name in versions.items()
            if now.get(version) != self._changed_at[name] or self._operator.get(name) is None
        ]
        for name in stale:
            await self._renew(name)
        return stale

    async def _renew(self, name: str) -> None:
        del self._changed_at[name]
        before = self._operator.get(name)
        if before is None or before.tenant is None:
            return
        try:
            found = await self.fetch(name, before.tenant)
        except ModelCallError as error:
            log.warning("connection not usable", connection=name, reason=str(error))
            found = None
        if found is None:
            self._operator.forget(name)

    @contextlib.asynccontextmanager
    async def keeping(self, renew: Callable[[str], None]) -> AsyncIterator[None]:
        """Looks for changes as long as the block runs.

        Args:
            renew: Is given the name of each connection that is another now, or gone.
        """
        async with vital_tasks(connections=self._keep(renew)):
            yield

    async def _keep(self, renew: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                for name in await self.refresh():
                    renew(name)
            except Exception as error:
                if not is_away(error):
                    log.exception("connections not looked after; trying again")

    def _key(self, row: ConnectionRow) -> SecretStr | None:
        if row.sealed_key is None:
            return None
        try:
            return key_of(self._ring.open(row.sealed_key, binding(row.tenant, row.version, row.base_url)))
        except SealError as error:
            problem = f"the key of connection {row.name!r} can't be read: {error}"
        raise ModelCallError(problem, kind=FailureKind.JOB, code="key_unreadable")

    def _connection(self, row: ConnectionRow, key: SecretStr | None) -> Connection:
        return Connection(
            id=reference(row),
            kind=row.kind,
            base_url=row.base_url,
            api_key=key,
            limits=ConnectionLimits.model_validate(row.limits),
            prices={model: ModelPrices.model_validate(own) for model, own in row.prices.items()},
            models=None if row.models is None else tuple(row.models),
            batches=row.batches,
            stream=row.stream,
            families=row.families,
            guard=self._guard,
            tenant=row.tenant,
        )


async def _find_version(connection: AsyncConnection, name: str, tenant: str) -> ConnectionRow | None:
    row = await kept.find_version(connection, tenant, name.partition(_MARK)[2])
    return row if row is not None and reference(row) == name else None


async def reseal(engine: AsyncEngine, ring: SecretCipher) -> int:
    """Encrypts every key with the ring's first key, so that the others can be taken away.

    Returns:
        How many there were to be encrypted anew.
    """
    done = 0
    async with engine.begin() as connection:
        for row in await kept.lock_sealed(connection):
            if row.sealed_key is None or not ring or ring.is_current(row.sealed_key):
                continue
            bound_to = binding(row.tenant, row.version, row.base_url)
            try:
                sealed = ring.seal(ring.open(row.sealed_key, bound_to), bound_to)
            except SealError as error:
                log.warning("key of a connection not readable", connection=row.name, reason=str(error))
                continue
            await kept.change_version(connection, row.version, {"sealed_key": sealed})
            done += 1
    return done
