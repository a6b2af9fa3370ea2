"""Webhooks as the HTTP contract shows them: made, changed, tried out, removed."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import idempotency
from app.db.locks import lock
from app.db.webhooks import webhooks
from app.db.webhooks.webhooks import SWITCHED_OFF, DeliveryRow, WebhookRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.webhooks.webhook import FORMER_SECRET_HOURS, SECRET_BYTES, TEST_EVENT, JobEvent, encode_secret
from app.guard.targets import Guard
from app.services.errors import IdempotencyConflictError, NotFoundError, TooOftenError, WrongStateError
from app.services.idempotency import ClientKey
from app.services.identifiers import new_id
from app.services.providers.guarded_urls import check_url
from app.services.timestamps import time_json
from app.services.webhooks.secrets import opened, sealed
from app.vault.secret_cipher import SealError, SecretCipher

Json = dict[str, Any]

MOST_WEBHOOKS = 20
"""Of one tenant: each event is a message to all of them."""
MOST_TESTS = 10
"""Of one webhook in :data:`TEST_SECONDS`, lest anybody have us flood a receiver."""
TEST_SECONDS = 60
BY_USER = "by_user"


@dataclass(frozen=True, slots=True)
class WebhookDependencies:
    """What making webhooks takes.

    Attributes:
        engine: The database.
        guard: Says where messages may go.
        ring: Encrypts their secrets.
    """

    engine: AsyncEngine
    guard: Guard
    ring: SecretCipher


@dataclass(frozen=True, slots=True)
class WebhookDraft:
    """A webhook that is to be made, and the client's key for the request, if it gave one."""

    url: str
    events: Sequence[JobEvent]
    description: str | None
    client_key: ClientKey | None = None


async def create_webhook(deps: WebhookDependencies, tenant: str, draft: WebhookDraft) -> Json:
    """Keeps a webhook, or finds the one that the same request made already; the answer has its secret.

    Raises:
        InvalidJobError: If nothing may be sent to the URL, or there are too many already.
        IdempotencyConflictError: If the client's key came with another body within the last day.
    """
    await check_url(deps.guard, "/url", draft.url)
    async with deps.engine.begin() as connection:
        await lock(connection, f"webhooks of {tenant}")
        key = draft.client_key
        webhook_id = None if key is None else await key.made_before(connection, tenant)
        if webhook_id is None:
            webhook_id = await _insert(connection, tenant, draft, deps.ring)
        kept = await webhooks.secret_of(connection, tenant, webhook_id)
        if kept is None:
            raise IdempotencyConflictError  # by the same key something else was made
    try:
        secret = opened(deps.ring, webhook_id, kept)
    except SealError as error:
        message = f"the secret of {webhook_id} can't be read any more: {error}"
        raise InvalidJobError([FieldError("", message)]) from error
    return await find_webhook(deps.engine, tenant, webhook_id) | {"secret": secret}


async def _insert(connection: AsyncConnection, tenant: str, draft: WebhookDraft, ring: SecretCipher) -> str:
    """The id of a new webhook, which holds the client's key."""
    if await webhooks.count_webhooks(connection, tenant) >= MOST_WEBHOOKS:
        raise InvalidJobError([FieldError("", f"there are {MOST_WEBHOOKS} webhooks already")])
    webhook_id = new_id("whk")
    await webhooks.insert_webhook(
        connection,
        {
            "id": webhook_id,
            "tenant": tenant,
            "url": draft.url,
            "description": draft.description,
            "events": _names(draft.events),
            "secret": sealed(ring, webhook_id, _new_secret()),
        },
    )
    if draft.client_key is not None:
        key, body_hash = draft.client_key.key, draft.client_key.body_hash
        held = await idempotency.claim_key(connection, tenant, key, body_hash, webhook_id=webhook_id)
        if held is not None:
            raise IdempotencyConflictError  # a job took it meanwhile
    return webhook_id


async def find_webhook(engine: AsyncEngine, tenant: str, webhook_id: str) -> Json:
    """A webhook.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        row = await webhooks.get_webhook(connection, tenant, webhook_id)
    if row is None:
        raise NotFoundError("such webhook")
    return webhook_json(row)


async def change_webhook(
    deps: WebhookDependencies, tenant: str, webhook_id: str, changes: Mapping[str, Any]
) -> Json:
    """Changes a webhook; what is not named stays.

    Args:
        deps: What it takes.
        tenant: Whose it is.
        webhook_id: Which.
        changes: By name: ``url``, ``description``, ``events``, ``enabled``.

    Raises:
        NotFoundError: If the tenant has none of that id.
        InvalidJobError: If nothing may be sent to the URL.
    """
    values = dict(changes)
    if "url" in values:
        await check_url(deps.guard, "/url", values["url"])
    if "events" in values:
        values["events"] = _names(values["events"])
    off = values.get("enabled") is False
    if "enabled" in values:
        values["disabled_reason"] = BY_USER if off else None
        del values["enabled"]
    async with deps.engine.begin() as connection:
        if not await webhooks.change_webhook(connection, tenant, webhook_id, values):
            raise NotFoundError("such webhook")
        if off:
            await webhooks.give_up_waiting(connection, webhook_id, SWITCHED_OFF)
    return await find_webhook(deps.engine, tenant, webhook_id)


async def rotate_secret(deps: WebhookDependencies, tenant: str, webhook_id: str) -> Json:
    """Gives a webhook another secret, which the answer has; for a day messages are signed with its present one as well.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    secret = _new_secret()
    kept = sealed(deps.ring, webhook_id, secret)
    async with deps.engine.begin() as connection:
        if not await webhooks.replace_secret(connection, tenant, webhook_id, kept, FORMER_SECRET_HOURS):
            raise NotFoundError("such webhook")
    return await find_webhook(deps.engine, tenant, webhook_id) | {"secret": secret}


async def delete_webhook(engine: AsyncEngine, tenant: str, webhook_id: str) -> None:
    """Removes a webhook; what waits for it is not delivered any more.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        if not await webhooks.delete_webhook(connection, tenant, webhook_id):
            raise NotFoundError("such webhook")


async def send_test(engine: AsyncEngine, tenant: str, webhook_id: str) -> Json:
    """Has a test message delivered like any other, and returns where it stands.

    Raises:
        NotFoundError: If the tenant has none of that id.
        WrongStateError: If it is off.
        TooOftenError: If it was sent too many lately.
    """
    found = await find_webhook(engine, tenant, webhook_id)
    if not found["enabled"]:
        raise WrongStateError("a webhook that is off is sent nothing; switch it on first")
    now = time_json(datetime.now(UTC))
    payload = json.dumps({"type": TEST_EVENT, "timestamp": now, "data": {"webhook": webhook_id}})
    async with engine.begin() as connection:
        await lock(connection, f"tests of {webhook_id}")
        count, seconds = await webhooks.recent_tests(connection, webhook_id, TEST_SECONDS)
        if count >= MOST_TESTS:
            raise TooOftenError(f"a webhook is sent {MOST_TESTS} tests a minute at most", max(1, seconds))
        row = await webhooks.insert_delivery(
            connection, tenant, webhook_id, new_id("msg"), TEST_EVENT, payload
        )
    return delivery_json(row)


def webhook_json(row: WebhookRow) -> Json:
    """A webhook without its secrets."""
    return {
        "id": row.id,
        "object": "webhook",
        "url": row.url,
        "description": row.description,
        "events": row.events,
        "enabled": row.disabled_reason is None,
        "disabled_reason": row.disabled_reason,
        "former_secret_until": time_json(row.former_secret_until),
        "created_at": time_json(row.created_at),
        "updated_at": time_json(row.updated_at),
    }


def delivery_json(row: DeliveryRow) -> Json:
    """A message and how its delivery goes."""
    return {
        "id": row.id,
        "object": "webhook_delivery",
        "webhook": row.webhook_id,
        "event": row.event,
        "job": row.job_id,
        "state": row.state,
        "attempts": row.attempts,
        "http_status": row.http_status,
        "error": row.error,
        "created_at": time_json(row.created_at),
        "attempted_at": time_json(row.attempted_at),
        "next_attempt_at": time_json(row.due_at) if row.state == "waiting" else None,
        "ended_at": time_json(row.ended_at),
    }


def _new_secret() -> str:
    return encode_secret(secrets.token_bytes(SECRET_BYTES))


def _names(events: Sequence[JobEvent]) -> list[str]:
    """Each event once."""
    return [event.value for event in dict.fromkeys(events)]
