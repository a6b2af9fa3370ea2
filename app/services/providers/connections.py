"""Connections to model providers: create, change, delete; their keys are never returned."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.locks import lock
from app.db.providers import connections
from app.db.providers.connections import ConnectionRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.providers.contract import KeptConnection, KeptConnectionList
from app.guard.targets import Guard
from app.llm.connections.connections import SIMULATED, SIMULATED_ANTHROPIC, Connections
from app.services.errors import NameTakenError, NotFoundError
from app.services.providers.connection_book import binding, origin
from app.services.providers.guarded_urls import check_url
from app.vault.secret_cipher import SealError, SecretCipher

Json = dict[str, Any]

MOST_CONNECTIONS = 50
"""Of one tenant."""
MOST_VERSIONS = 20
"""Of one connection; jobs that still call an older one stop."""
VERSION_BYTES = 8
HINT_CHARACTERS = 4
SHORTEST_WITH_HINT = 20
"""Characters of a key of which the last few may be shown: what is left says too much of a shorter one."""

NO_BATCHES = "the wire format completions has no batches"

_VERSIONED = frozenset({"base_url", "limits", "prices"})
"""What jobs under way keep as it was."""


@dataclass(frozen=True, slots=True)
class ConnectionDependencies:
    """What making connections takes.

    Attributes:
        engine: The database.
        operator: The operator's connections, whose names nobody else may take.
        guard: Says where connections may lead.
        ring: Encrypts their keys.
    """

    engine: AsyncEngine
    operator: Connections
    guard: Guard
    ring: SecretCipher


async def create_connection(
    deps: ConnectionDependencies, tenant: str, values: Mapping[str, Any], key: SecretStr | None
) -> KeptConnection:
    """Keeps a connection.

    Args:
        deps: What it takes.
        tenant: Whose it is.
        values: Its columns that a user gives.
        key: Its key, if its server wants one.

    Raises:
        NameTakenError: If there is one of that name.
        InvalidJobError: If it may not lead there, its key can't be kept, its wire format has no batches, or there are too many already.
    """
    name, base_url = str(values["name"]), str(values["base_url"])
    if deps.operator.get(name) is not None or name in {SIMULATED, SIMULATED_ANTHROPIC}:
        raise NameTakenError(f"connection {name!r} of the operator")
    if values["batches"] and values["kind"] == "completions":
        raise InvalidJobError([FieldError("/batches", NO_BATCHES)])
    await check_url(deps.guard, "/base_url", base_url)
    version = _new_version()
    row = {**values, "version": version, "tenant": tenant, **_sealed(deps, tenant, version, base_url, key)}
    async with deps.engine.begin() as connection:
        await lock(connection, f"connections of {tenant}")
        if len(await connections.list_current(connection, tenant)) >= MOST_CONNECTIONS:
            raise InvalidJobError([FieldError("", f"limit of {MOST_CONNECTIONS} connections reached")])
        if not await connections.insert_version(connection, row):
            raise NameTakenError(f"connection {name!r}")
    return await find_connection(deps.engine, tenant, name)


async def list_connections(engine: AsyncEngine, tenant: str) -> KeptConnectionList:
    """A tenant's connections by name."""
    async with engine.connect() as connection:
        rows = await connections.list_current(connection, tenant)
    return KeptConnectionList(data=[_show(row) for row in rows])


async def find_connection(engine: AsyncEngine, tenant: str, name: str) -> KeptConnection:
    """A connection.

    Raises:
        NotFoundError: If the tenant has none of that name.
    """
    async with engine.connect() as connection:
        versions = await connections.list_versions(connection, tenant, name)
    return _show(_current(versions))


async def change_connection(
    deps: ConnectionDependencies, tenant: str, name: str, changes: Mapping[str, Any]
) -> KeptConnection:
    """Changes a connection; what is not named stays.

    Jobs under way keep URL, limits and prices; a new key reaches those whose requests go to the same scheme, host and port.

    Args:
        deps: What it takes.
        tenant: Whose it is.
        name: Which.
        changes: Columns by name, and ``api_key``.

    Raises:
        NotFoundError: If the tenant has none of that name.
        InvalidJobError: If it may not lead there, its key is not given anew though it is to lead to another host, or its wire format
            has no batches.
    """
    values = {field: value for field, value in changes.items() if field != "api_key"}
    if "base_url" in values:
        await check_url(deps.guard, "/base_url", values["base_url"])
    async with deps.engine.begin() as connection:
        await lock(connection, f"connections of {tenant}")
        versions = await connections.list_versions(connection, tenant, name)
        current = _current(versions)
        if values.get("batches") and current.kind == "completions":
            raise InvalidJobError([FieldError("/batches", NO_BATCHES)])
        if any(getattr(current, field) != values[field] for field in _VERSIONED & values.keys()):
            await _add_version(deps, connection, versions, values, changes)
        else:
            await connections.change_version(connection, current.version, values)
        if "api_key" in changes:
            await _replace_keys(deps, connection, versions, current, changes)
    return await find_connection(deps.engine, tenant, name)


async def delete_connection(engine: AsyncEngine, tenant: str, name: str) -> None:
    """Removes a connection and its keys; jobs that still call it stop.

    Raises:
        NotFoundError: If the tenant has none of that name.
    """
    async with engine.begin() as connection:
        if not await connections.delete_connection(connection, tenant, name):
            raise NotFoundError("connection not found")


def _show(row: ConnectionRow) -> KeptConnection:
    """A connection without its key; what is not set of a limit or price stays so."""
    shown = {name: getattr(row, name) for name in KeptConnection.model_fields.keys() - {"object", "key_set"}}
    return KeptConnection(object="connection", key_set=row.sealed_key is not None, **shown)


def _current(versions: list[ConnectionRow]) -> ConnectionRow:
    if not versions:
        raise NotFoundError("connection not found")
    return versions[0]


async def _add_version(
    deps: ConnectionDependencies,
    connection: AsyncConnection,
    versions: list[ConnectionRow],
    values: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> None:
    current, version = versions[0], _new_version()
    base_url = str(values.get("base_url", current.base_url))
    key = changes.get("api_key")
    if "api_key" not in changes and current.sealed_key is not None:
        if origin(base_url) != origin(current.base_url):
            message = "a key is for one scheme, host and port: give it again, or null for none"
            raise InvalidJobError([FieldError("/api_key", message)])
        key = _opened(deps, current)
    row = {field: getattr(current, field) for field in _KEPT_BY_NEXT} | dict(values)
    row |= {"version": version, **_sealed(deps, current.tenant, version, base_url, key)}
    await connections.change_version(connection, current.version, {"is_current": False})
    await connections.insert_version(connection, row)
    await connections.delete_versions(connection, [old.version for old in versions[MOST_VERSIONS - 1 :]])


_KEPT_BY_NEXT = (
    *("tenant", "name", "kind", "base_url", "limits", "prices", "models", "batches"),
    *("stream", "families", "description"),
)


async def _replace_keys(
    deps: ConnectionDependencies,
    connection: AsyncConnection,
    versions: list[ConnectionRow],
    current: ConnectionRow,
    changes: Mapping[str, Any],
) -> None:
    """Gives a new key to all versions that lead to where the connection leads now."""
    leads_to = origin(str(changes.get("base_url", current.base_url)))
    for row in versions:
        if origin(row.base_url) == leads_to:
            sealed = _sealed(deps, row.tenant, row.version, row.base_url, changes["api_key"])
            await connections.change_version(connection, row.version, sealed)


def _opened(deps: ConnectionDependencies, row: ConnectionRow) -> SecretStr | None:
    try:
        return deps.ring.open(row.sealed_key or "", binding(row.tenant, row.version, row.base_url))
    except SealError as error:
        message = f"the stored key can't be read ({error}): give it again, or null for none"
        raise InvalidJobError([FieldError("/api_key", message)]) from error


def _sealed(
    deps: ConnectionDependencies, tenant: str, version: str, base_url: str, key: SecretStr | None
) -> Json:
    """The columns of a key."""
    if key is None:
        return {"sealed_key": None, "key_hint": None}
    if not deps.ring:
        message = (
            "the service has nothing to encrypt keys with: the operator has to set ASSAY_ENCRYPTION_KEYS"
        )
        raise InvalidJobError([FieldError("/api_key", message)])
    characters = key.get_secret_value()
    hint = characters[-HINT_CHARACTERS:] if len(characters) >= SHORTEST_WITH_HINT else None
    return {"sealed_key": deps.ring.seal(key, binding(tenant, version, base_url)), "key_hint": hint}


def _new_version() -> str:
    """Guessed by nobody, though whoever guesses it can do nothing with it."""
    return secrets.token_hex(VERSION_BYTES)
