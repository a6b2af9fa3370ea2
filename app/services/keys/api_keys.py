"""API keys: create, list, rotate, revoke."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.keys import api_keys
from app.db.keys.api_keys import KeyRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.budget import NANOS, Budget, limits_of
from app.domain.keys.api_key import POSSIBLE, Scope, compose, digest, is_over, pepper_name, prefix_of
from app.domain.keys.contract import (
    OVERLAP_SECONDS,
    ApiKey,
    ApiKeyChangeIn,
    ApiKeyIn,
    FormerKey,
    NewApiKey,
    Spending,
    SpendingIn,
)
from app.services.errors import NotFoundError
from app.services.identifiers import new_id
from app.services.keys.key_limits import check_change, check_new, check_rotation, limits_of_maker


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


class NoPepperError(Exception):
    """There is nothing to hash keys with."""

    def __init__(self) -> None:
        super().__init__(
            "keys cannot be created or checked: neither ASSAY_KEY_PEPPER nor ASSAY_KEY_PEPPER_FILE is set"
        )


def no_keys_yet(deed: str) -> str:
    """Why a service without keys does something on this machine only, and what to do about it."""
    return (
        f"without API keys the service {deed}: anyone who reaches it could spend your providers' money."
        " Create a key first: assay keys create --name … --scope admin"
    )


async def create_key(
    deps: KeyDependencies, tenant: str, wanted: ApiKeyIn, maker: str | None = None
) -> NewApiKey:
    """Makes a key; the answer is the only one that has it. Its cap is taken of that of the key that makes it.

    Args:
        deps: What it takes.
        tenant: Whose key it becomes.
        wanted: The key.
        maker: Id of the key that makes it; ``None`` for the operator.

    Raises:
        BeyondOwnLimitsError: If it had fewer limits than the key that makes it.
        InvalidJobError: If it would have ended before it began.
        NoPepperError: If there is nothing to hash it with.
    """
    if is_over(wanted.expires_at, clock.now()):
        raise InvalidJobError([FieldError("/expires_at", "must be in the future")])
    key, kept = _new_secret(deps)
    nanos = None if wanted.spending is None else _nanos(wanted.spending)
    values = {
        "id": new_id("key"),
        "tenant": tenant,
        "name": wanted.name,
        "scopes": [scope.value for scope in Scope if scope in wanted.scopes],
        "expires_at": wanted.expires_at,
        "requests_per_minute": wanted.requests_per_minute,
        "nanos_limit": nanos,
    }
    async with deps.engine.begin() as connection:
        own = await limits_of_maker(connection, tenant, maker)
        check_new(
            own, expires_at=wanted.expires_at, requests_per_minute=wanted.requests_per_minute, nanos=nanos
        )
        if own is not None and own.nanos_limit is not None and nanos is not None:
            await api_keys.count_as_spent(connection, tenant, own.id, nanos)
        row = await api_keys.insert_key(connection, values | kept)
    return _new(row, key)


async def find_key(engine: AsyncEngine, tenant: str, key_id: str) -> ApiKey:
    """A key, without what would let anybody use it.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        return show_key(_known(await api_keys.get_key(connection, tenant, key_id)))


async def change_key(
    engine: AsyncEngine, tenant: str, key_id: str, changes: ApiKeyChangeIn, maker: str | None = None
) -> ApiKey:
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
    values = changes.model_dump(exclude_unset=True, exclude={"spending"})
    async with engine.begin() as connection:
        own = await limits_of_maker(connection, tenant, maker)
        row = _known(await api_keys.get_key(connection, tenant, key_id))
        if "spending" in changes.model_fields_set:
            if row.nanos_limit is None:
                raise InvalidJobError([FieldError("/spending", "the key was created without a spending cap")])
            values["nanos_limit"] = _nanos(changes.spending)
        check_change(
            own,
            row,
            requests_per_minute=changes.requests_per_minute,
            changes_requests="requests_per_minute" in values,
            nanos=values.get("nanos_limit"),
        )
        return show_key(_known(await api_keys.change_key(connection, tenant, key_id, values)))


async def rotate_key(
    deps: KeyDependencies,
    tenant: str,
    key_id: str,
    overlap_seconds: int = OVERLAP_SECONDS,
    maker: str | None = None,
) -> NewApiKey:
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
    return _new(_known(row), key)


async def revoke_key(engine: AsyncEngine, tenant: str, key_id: str) -> ApiKey:
    """Ends a key for good; a revoked one stays as it is.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        return show_key(_known(await api_keys.revoke_key(connection, tenant, key_id)))


async def end_sessions(engine: AsyncEngine, tenant: str, key_id: str, sign_outs: int) -> None:
    """Ends the sessions of those who signed in with a key, unless that was done since they were counted."""
    async with engine.begin() as connection:
        await api_keys.end_sessions(connection, tenant, key_id, sign_outs)


def show_key(row: KeyRow) -> ApiKey:
    """A key without what would let anybody use it."""
    now = clock.now()
    former, spending = None, None
    if row.former_expires_at is not None and not is_over(row.former_expires_at, now):
        former = FormerKey(prefix=row.former_prefix or "", expires_at=row.former_expires_at)
    if row.nanos_limit is not None:
        spending = Spending(usd_limit=row.nanos_limit / NANOS, usd_spent=row.nanos_taken / NANOS)
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=[Scope(scope).value for scope in row.scopes],
        status=_status(row, now),
        former=former,
        requests_per_minute=row.requests_per_minute,
        spending=spending,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


def _new(row: KeyRow, key: str) -> NewApiKey:
    return NewApiKey(**vars(show_key(row)), key=key)


def _nanos(spending: SpendingIn) -> int | None:
    return limits_of(Budget(usd=spending.usd_limit)).nanos


def _status(row: KeyRow, now: datetime) -> Literal["live", "expired", "revoked"]:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if is_over(row.expires_at, now) else "live"


def _known(row: KeyRow | None) -> KeyRow:
    if row is None:
        raise NotFoundError("key not found")
    return row


def _new_secret(deps: KeyDependencies) -> tuple[str, dict[str, Any]]:
    """A new key, and the columns that are kept of it."""
    if deps.pepper is None:
        raise NoPepperError
    key = compose(secrets.randbelow(POSSIBLE))
    return key, {
        "prefix": prefix_of(key),
        "digest": digest(deps.pepper, key),
        "pepper": pepper_name(deps.pepper),
    }
