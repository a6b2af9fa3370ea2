"""API keys as the HTTP contract shows them: made, listed, rotated, revoked."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.keys import api_keys
from app.db.keys.api_keys import KeyRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.budget import NANOS, Budget, limits_of
from app.domain.keys.api_key import POSSIBLE, Scope, compose, digest, is_over, prefix_of
from app.services.errors import NotFoundError
from app.services.identifiers import new_id
from app.services.keys.key_limits import check_change, check_new, check_rotation, limits_of_maker
from app.services.timestamps import time_json

Json = dict[str, Any]

OVERLAP_SECONDS = 24 * 3600
"""How long the key before a rotation is taken, unless said otherwise: time to change it where it is used."""


@dataclass(frozen=True, slots=True)
class KeyDependencies:
    """What managing keys takes.

    Attributes:
        engine: The database.
        pepper: What keys are hashed with; ``None`` where none is configured, and no key can be made or checked.
    """

    engine: AsyncEngine
    pepper: bytes | None

    def __repr__(self) -> str:
        return "KeyDependencies()"  # no secret in a log or a traceback


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """A key that is to be made.

    Attributes:
        name: For people.
        scopes: What it may do.
        expires_at: When it ends; ``None`` for never.
        requests_per_minute: How often it may ask; ``None`` for no limit.
        usd: What its jobs may spend together; ``None`` for no cap.
    """

    name: str
    scopes: Collection[Scope]
    expires_at: datetime | None = None
    requests_per_minute: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What to change of a key.

    Attributes:
        name: Another name; ``None`` for the one that it has.
        requests_per_minute: How often it may ask; ``None`` for no limit.
        changes_requests: Whether that is to be changed.
        usd: Another cap; ``None`` for the one that it has.
    """

    name: str | None
    requests_per_minute: int | None
    changes_requests: bool
    usd: float | None


class NoPepperError(Exception):
    """There is nothing to hash keys with."""

    def __init__(self) -> None:
        super().__init__(
            "no key can be made or checked: neither ASSAY_KEY_PEPPER nor ASSAY_KEY_PEPPER_FILE is set"
        )


def no_keys_yet(deed: str) -> str:
    """Why a service without keys does something on this machine only, and what to do about it."""
    return (
        f"without API keys the service {deed}: whoever reaches it could spend your providers' money."
        " Make a key first: assay keys create --name … --scope admin"
    )


async def create_key(deps: KeyDependencies, tenant: str, draft: KeyDraft, maker: str | None = None) -> Json:
    """Makes a key; the answer is the only one that has it. Its cap is taken of that of the key that makes it.

    Args:
        deps: What it takes.
        tenant: Whose key it becomes.
        draft: The key.
        maker: Id of the key that makes it; ``None`` for the operator.

    Raises:
        BeyondOwnLimitsError: If it had fewer limits than the key that makes it.
        InvalidJobError: If it would have ended before it began.
        NoPepperError: If there is nothing to hash it with.
    """
    if is_over(draft.expires_at, datetime.now(UTC)):
        raise InvalidJobError([FieldError("/expires_at", "a key ends in the future")])
    key, kept = _new_secret(deps)
    nanos = None if draft.usd is None else limits_of(Budget(usd=draft.usd)).nanos
    values = {
        "id": new_id("key"),
        "tenant": tenant,
        "name": draft.name,
        "scopes": [scope.value for scope in Scope if scope in draft.scopes],
        "expires_at": draft.expires_at,
        "requests_per_minute": draft.requests_per_minute,
        "nanos_limit": nanos,
    }
    async with deps.engine.begin() as connection:
        own = await limits_of_maker(connection, tenant, maker)
        check_new(
            own, expires_at=draft.expires_at, requests_per_minute=draft.requests_per_minute, nanos=nanos
        )
        if own is not None and own.nanos_limit is not None and nanos is not None:
            await api_keys.count_as_spent(connection, tenant, own.id, nanos)
        row = await api_keys.insert_key(connection, values | kept)
    return key_json(row) | {"key": key}


async def find_key(engine: AsyncEngine, tenant: str, key_id: str) -> Json:
    """A key, without what would let anybody use it.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        return key_json(_known(await api_keys.get_key(connection, tenant, key_id)))


async def change_key(
    engine: AsyncEngine, tenant: str, key_id: str, changes: KeyChanges, maker: str | None = None
) -> Json:
    """Changes a key; jobs that paused for its cap go on when they are resumed.

    Args:
        engine: The database.
        tenant: Whose it is.
        key_id: The key.
        changes: What to change.
        maker: Id of the key by which it is changed; ``None`` for the operator.

    Raises:
        BeyondOwnLimitsError: If it had fewer limits than the key by which it is changed.
        NotFoundError: If the tenant has none of that id.
        InvalidJobError: If it is to have a cap, and was made without.
    """
    values: dict[str, Any] = {} if changes.name is None else {"name": changes.name}
    if changes.changes_requests:
        values["requests_per_minute"] = changes.requests_per_minute
    async with engine.begin() as connection:
        own = await limits_of_maker(connection, tenant, maker)
        row = _known(await api_keys.get_key(connection, tenant, key_id))
        if changes.usd is not None:
            if row.nanos_limit is None:
                raise InvalidJobError([FieldError("/spending", "the key was made without a cap")])
            values["nanos_limit"] = limits_of(Budget(usd=changes.usd)).nanos
        check_change(
            own,
            row,
            requests_per_minute=changes.requests_per_minute,
            changes_requests=changes.changes_requests,
            nanos=values.get("nanos_limit"),
        )
        return key_json(_known(await api_keys.change_key(connection, tenant, key_id, values)))


async def rotate_key(
    deps: KeyDependencies,
    tenant: str,
    key_id: str,
    overlap_seconds: int = OVERLAP_SECONDS,
    maker: str | None = None,
) -> Json:
    """Makes another key in a key's place, which has all its rights and limits; the answer is the only one that has it.

    Raises:
        BeyondOwnLimitsError: If it has fewer limits than the key ``maker``, by which it is rotated.
        NotFoundError: If the tenant has none of that id that lives.
        NoPepperError: If there is nothing to hash it with.
    """
    key, kept = _new_secret(deps)
    async with deps.engine.begin() as connection:
        own = await limits_of_maker(connection, tenant, maker)
        check_rotation(own, _known(await api_keys.get_key(connection, tenant, key_id)))
        row = await api_keys.rotate_key(connection, tenant, key_id, **kept, seconds=overlap_seconds)
    return key_json(_known(row)) | {"key": key}


async def revoke_key(engine: AsyncEngine, tenant: str, key_id: str) -> Json:
    """Ends a key for good; a revoked one stays as it is.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        return key_json(_known(await api_keys.revoke_key(connection, tenant, key_id)))


async def end_sessions(engine: AsyncEngine, tenant: str, key_id: str, sign_outs: int) -> None:
    """Ends the sessions of those who signed in with a key, unless that was done since they were counted."""
    async with engine.begin() as connection:
        await api_keys.end_sessions(connection, tenant, key_id, sign_outs)


def key_json(row: KeyRow) -> Json:
    """A key without what would let anybody use it."""
    now = datetime.now(UTC)
    former_lives = row.former_expires_at is not None and not is_over(row.former_expires_at, now)
    return {
        "id": row.id,
        "object": "api_key",
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "status": _status(row, now),
        "former": {"prefix": row.former_prefix, "expires_at": time_json(row.former_expires_at)}
        if former_lives
        else None,
        "requests_per_minute": row.requests_per_minute,
        "spending": None
        if row.nanos_limit is None
        else {"usd_limit": row.nanos_limit / NANOS, "usd_spent": row.nanos_taken / NANOS},
        "created_at": time_json(row.created_at),
        "expires_at": time_json(row.expires_at),
        "revoked_at": time_json(row.revoked_at),
        "last_used_at": time_json(row.last_used_at),
    }


def _status(row: KeyRow, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if is_over(row.expires_at, now) else "live"


def _known(row: KeyRow | None) -> KeyRow:
    if row is None:
        raise NotFoundError("such key")
    return row


def _new_secret(deps: KeyDependencies) -> tuple[str, dict[str, Any]]:
    """A new key, and the columns that are kept of it."""
    if deps.pepper is None:
        raise NoPepperError
    key = compose(secrets.randbelow(POSSIBLE))
    return key, {"prefix": prefix_of(key), "digest": digest(deps.pepper, key)}
