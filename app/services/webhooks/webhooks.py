"""Webhooks: create, change, test, delete."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.jobs import idempotency
from app.db.locks import lock
from app.db.reasons import reason
from app.db.webhooks import webhooks
from app.db.webhooks.webhooks import SWITCHED_OFF
from app.domain.errors import FieldError, InvalidJobError
from app.domain.webhooks.contract import Delivery, NewWebhook, Webhook, WebhookChangeIn, WebhookIn
from app.domain.webhooks.webhook import (
    FORMER_SECRET_HOURS,
    SECRET_BYTES,
    TEST_EVENT,
    WebhookEvent,
    encode_secret,
)
from app.guard.targets import Guard
from app.services.errors import IdempotencyConflictError, NotFoundError, TooOftenError, WrongStateError
from app.services.idempotency import ClientKey
from app.services.identifiers import new_id
from app.services.providers.guarded_urls import check_url
from app.services.webhooks.secrets import opened, sealed
from app.vault.secret_cipher import SealError, SecretCipher

MOST_WEBHOOKS = 20
"""Of one tenant: each event is a message to all of them."""
MOST_TESTS = 10
"""Of one webhook in :data:`TEST_SECONDS`, lest anybody have us flood a receiver."""
TEST_SECONDS = 60
READER_QUIET_SECONDS = 600.0
"""Shortest time between two messages about files that exceeded the same limit."""
BY_USER = "by_user"

log = structlog.get_logger(__name__)


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


async def create_webhook(
    deps: WebhookDependencies, tenant: str, wanted: WebhookIn, key: ClientKey | None = None
) -> NewWebhook:
    """Keeps a webhook, or finds the one that the same request made already; the answer has its secret.

    Raises:
        InvalidJobError: If nothing may be sent to the URL, or there are too many already.
        IdempotencyConflictError: If the client's key came with another body within the last day.
    """
    await check_url(deps.guard, "/url", wanted.url)
    async with deps.engine.begin() as connection:
        await lock(connection, f"webhooks of {tenant}")
        webhook_id = None if key is None else await key.made_before(connection, tenant)
        if webhook_id is None:
            webhook_id = await _insert(connection, tenant, wanted, key, deps.ring)
        kept = await webhooks.secret_of(connection, tenant, webhook_id)
        if kept is None:
            raise IdempotencyConflictError  # by the same key something else was made
    try:
        secret = opened(deps.ring, webhook_id, kept)
    except SealError as error:
        message = f"the secret of {webhook_id} can no longer be decrypted: {error}"
        raise InvalidJobError([FieldError("", message)]) from error
    return NewWebhook(**vars(await find_webhook(deps.engine, tenant, webhook_id)), secret=secret)


async def _insert(
    connection: AsyncConnection, tenant: str, wanted: WebhookIn, key: ClientKey | None, ring: SecretCipher
) -> str:
    """The id of a new webhook, which holds the client's key."""
    if await webhooks.count_webhooks(connection, tenant) >= MOST_WEBHOOKS:
        raise InvalidJobError([FieldError("", f"limit of {MOST_WEBHOOKS} webhooks reached")])
    webhook_id = new_id("whk")
    await webhooks.insert_webhook(
        connection,
        {
            "id": webhook_id,
            "tenant": tenant,
            "url": wanted.url,
            "description": wanted.description,
            "events": _names(wanted.events),
            "secret": sealed(ring, webhook_id, _new_secret()),
        },
    )
    if key is not None:
        held = await idempotency.claim_key(connection, tenant, key.key, key.body_hash, webhook_id=webhook_id)
        if held is not None:
            raise IdempotencyConflictError  # a job took it meanwhile
    return webhook_id


async def find_webhook(engine: AsyncEngine, tenant: str, webhook_id: str) -> Webhook:
    """A webhook.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        found = await webhooks.get_webhook(connection, tenant, webhook_id)
    if found is None:
        raise NotFoundError("webhook not found")
    return found


async def change_webhook(
    deps: WebhookDependencies, tenant: str, webhook_id: str, changes: WebhookChangeIn
) -> Webhook:
    """Changes a webhook; what is not named stays.

    Raises:
        NotFoundError: If the tenant has none of that id.
        InvalidJobError: If nothing may be sent to the URL.
    """
    values = changes.model_dump(exclude_unset=True)
    if "url" in values:
        await check_url(deps.guard, "/url", changes.url)
    if "events" in values:
        values["events"] = _names(changes.events)
    if "enabled" in values:
        values["disabled_reason"] = None if values.pop("enabled") else BY_USER
    async with deps.engine.begin() as connection:
        if not await webhooks.change_webhook(connection, tenant, webhook_id, values):
            raise NotFoundError("webhook not found")
        if not changes.enabled:
            await webhooks.give_up_waiting(connection, webhook_id, SWITCHED_OFF)
    return await find_webhook(deps.engine, tenant, webhook_id)


async def rotate_secret(deps: WebhookDependencies, tenant: str, webhook_id: str) -> NewWebhook:
    """Gives a webhook another secret, which the answer has; for a day messages are signed with its present one as well.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    secret = _new_secret()
    kept = sealed(deps.ring, webhook_id, secret)
    async with deps.engine.begin() as connection:
        if not await webhooks.replace_secret(connection, tenant, webhook_id, kept, FORMER_SECRET_HOURS):
            raise NotFoundError("webhook not found")
    return NewWebhook(**vars(await find_webhook(deps.engine, tenant, webhook_id)), secret=secret)


async def delete_webhook(engine: AsyncEngine, tenant: str, webhook_id: str) -> None:
    """Removes a webhook; what waits for it is not delivered any more.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        if not await webhooks.delete_webhook(connection, tenant, webhook_id):
            raise NotFoundError("webhook not found")


async def send_test(engine: AsyncEngine, tenant: str, webhook_id: str) -> Delivery:
    """Has a test message delivered like any other, and returns where it stands.

    Raises:
        NotFoundError: If the tenant has none of that id.
        WrongStateError: If it is off.
        TooOftenError: If it was sent too many lately.
    """
    found = await find_webhook(engine, tenant, webhook_id)
    if not found.enabled:
        raise WrongStateError("the webhook is disabled; enable it first")
    now = clock.now().isoformat().replace("+00:00", "Z")
    payload = json.dumps({"type": TEST_EVENT, "timestamp": now, "data": {"webhook": webhook_id}})
    async with engine.begin() as connection:
        await lock(connection, f"tests of {webhook_id}")
        count, seconds = await webhooks.recent_tests(connection, webhook_id, TEST_SECONDS)
        if count >= MOST_TESTS:
            raise TooOftenError(f"at most {MOST_TESTS} test messages per minute and webhook", max(1, seconds))
        return await webhooks.insert_delivery(
            connection, tenant, webhook_id, new_id("msg"), TEST_EVENT, payload
        )


def _new_secret() -> str:
    return encode_secret(secrets.token_bytes(SECRET_BYTES))


async def note_reader_end(engine: AsyncEngine, tenant: str, limit: str) -> None:
    """Write messages about a file that crashed its reader or exceeded one of its limits."""
    data = {"object": "file", "limit": limit}
    event = WebhookEvent.READER_ENDED
    try:
        async with engine.begin() as connection:
            await webhooks.note_event(
                connection, tenant, event, None, data, quiet_seconds=READER_QUIET_SECONDS
            )
    except (SQLAlchemyError, OSError) as error:  # the file's own answer matters more
        log.warning("message not written", webhook_event=event.value, reason=reason(error))


def _names(events: Sequence[WebhookEvent]) -> list[str]:
    """Each event once."""
    return [event.value for event in dict.fromkeys(events)]
