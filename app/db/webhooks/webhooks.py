"""Webhooks, and the outbox of their messages."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.locks import lock
from app.db.pages import page_of
from app.db.webhooks.tables import Webhook, WebhookDelivery
from app.domain.jobs.status import JobStatus
from app.domain.webhooks import contract
from app.domain.webhooks.webhook import EVENT_OF, TEST_EVENT, WebhookEvent

SWITCHED_OFF = "switched off"
"""Why a message is given up whose webhook is off."""


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A message that is to be delivered now, by whoever claimed it.

    Attributes:
        id: The message's id.
        attempt: The number of the attempt, from 1.
        webhook_id: The receiver.
        url: Where the receiver is.
        secrets: What to sign the message with as it is stored, the newest first.
        payload: The body.
    """

    id: str
    attempt: int
    webhook_id: str
    url: str
    secrets: list[str]
    payload: str

    def __repr__(self) -> str:
        return f"DueDelivery({self.id!r}, {self.attempt!r})"  # no secret in a log or a traceback


_WEBHOOK = [
    *(Webhook.id, Webhook.url, Webhook.description, Webhook.events, Webhook.disabled_reason),
    *(Webhook.former_secret_until, Webhook.created_at, Webhook.updated_at),
    Webhook.disabled_reason.is_(None).label("enabled"),
]
_DELIVERY = [
    *(WebhookDelivery.id, WebhookDelivery.event, WebhookDelivery.state, WebhookDelivery.attempts),
    *(WebhookDelivery.http_status, WebhookDelivery.error, WebhookDelivery.created_at),
    *(WebhookDelivery.attempted_at, WebhookDelivery.ended_at),
    WebhookDelivery.webhook_id.label("webhook"),
    WebhookDelivery.job_id.label("job"),
    case((WebhookDelivery.state == "waiting", WebhookDelivery.due_at)).label("next_attempt_at"),
]


async def note_status(connection: AsyncConnection, job_id: str, status: JobStatus) -> None:
    """Writes what is to be told of a job's new state, in the transaction that moves it there."""
    event = EVENT_OF.get(status)
    if event is None:
        return
    await connection.execute(
        text(
            "INSERT INTO webhook_deliveries (id, tenant, webhook_id, event, job_id, payload)"
            " SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), j.tenant, w.id, :event, j.id,"
            " json_build_object('type', CAST(:event AS text), 'timestamp', j.updated_at, 'data', json_build_object("
            "  'id', j.id, 'object', 'job', 'name', j.name, 'status', j.status, 'status_reason', j.status_reason,"
            "  'completeness', coalesce(r.completeness, 'partial'), 'error', j.error, 'metadata', j.metadata,"
            "  'links', json_build_object('self', '/v1/jobs/' || j.id)))::text"
            " FROM jobs j JOIN webhooks w ON w.tenant = j.tenant AND w.disabled_reason IS NULL AND :event = ANY(w.events)"
            " LEFT JOIN job_results r ON r.job_id = j.id WHERE j.id = :job"
            # One that is just being deleted is waited for and left out: a message of it would undo the whole move.
            " FOR KEY SHARE OF w"
        ),
        {"event": event.value, "job": job_id},
    )


async def note_event(
    connection: AsyncConnection,
    tenant: str,
    event: WebhookEvent,
    job_id: str | None,
    data: Mapping[str, Any],
    *,
    quiet_seconds: float = 0.0,
) -> None:
    """Write the messages about an event that is no change of a job's state, in the transaction that notes it.

    A webhook gets none if it got one with the same data in the last ``quiet_seconds``.
    """
    if quiet_seconds:
        await lock(connection, f"{event} to {tenant}")
    await connection.execute(
        text(
            "INSERT INTO webhook_deliveries (id, tenant, webhook_id, event, job_id, payload)"
            " SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), w.tenant, w.id, :event, :job,"
            " json_build_object('type', CAST(:event AS text), 'timestamp', now(), 'data', CAST(:data AS json))::text"
            " FROM webhooks w WHERE w.tenant = :tenant AND w.disabled_reason IS NULL AND :event = ANY(w.events)"
            " AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.event = :event"
            "  AND d.created_at > clock_timestamp() - make_interval(secs => :quiet)"
            "  AND CAST(d.payload AS json) ->> 'data' = CAST(CAST(:data AS json) AS text)) FOR KEY SHARE OF w"
        ),
        {"event": event.value, "job": job_id, "tenant": tenant, "data": json.dumps(data)}
        | {"quiet": quiet_seconds},
    )


async def insert_webhook(connection: AsyncConnection, values: Mapping[str, Any]) -> None:
    """Keeps a new webhook."""
    await connection.execute(insert(Webhook).values(dict(values)))


async def count_webhooks(connection: AsyncConnection, tenant: str) -> int:
    """How many a tenant has."""
    rows = await connection.execute(select(func.count()).where(Webhook.tenant == tenant))
    return int(rows.scalar_one())


async def list_webhooks(
    connection: AsyncConnection, tenant: str, *, limit: int, after: tuple[datetime, str] | None
) -> list[contract.Webhook]:
    """A tenant's webhooks, newest first; ``after`` is (created_at, id) of the last one of the page before."""
    query = select(*_WEBHOOK).where(Webhook.tenant == tenant)
    query = page_of(query, Webhook.created_at, Webhook.id, limit=limit, after=after)
    return [contract.Webhook.of_row(row) for row in await connection.execute(query)]


async def get_webhook(connection: AsyncConnection, tenant: str, webhook_id: str) -> contract.Webhook | None:
    """A tenant's webhook, if there is one of that id."""
    rows = await connection.execute(
        select(*_WEBHOOK).where(Webhook.tenant == tenant, Webhook.id == webhook_id)
    )
    row = rows.first()
    return None if row is None else contract.Webhook.of_row(row)


async def secret_of(connection: AsyncConnection, tenant: str, webhook_id: str) -> str | None:
    """What a tenant's webhook signs with, if there is one of that id."""
    rows = await connection.execute(
        select(Webhook.secret).where(Webhook.tenant == tenant, Webhook.id == webhook_id)
    )
    return rows.scalar_one_or_none()


async def change_webhook(
    connection: AsyncConnection, tenant: str, webhook_id: str, values: Mapping[str, Any]
) -> bool:
    """Changes these columns of a webhook; whether there is one of that id."""
    changed = await connection.execute(
        update(Webhook)
        .where(Webhook.tenant == tenant, Webhook.id == webhook_id)
        .values({**values, "updated_at": text("clock_timestamp()")})
        .returning(Webhook.id)
    )
    return changed.first() is not None


async def replace_secret(
    connection: AsyncConnection, tenant: str, webhook_id: str, secret: str, former_hours: int
) -> bool:
    """Gives a webhook another secret, beside which its present one goes on for so long; whether there is one of that id."""
    changed = await connection.execute(
        text(
            "UPDATE webhooks SET former_secret = secret, secret = :secret, updated_at = clock_timestamp(),"
            " former_secret_until = clock_timestamp() + make_interval(hours => :hours)"
            " WHERE tenant = :tenant AND id = :id RETURNING id"
        ),
        {"tenant": tenant, "id": webhook_id, "secret": secret, "hours": former_hours},
    )
    return changed.first() is not None


async def delete_webhook(connection: AsyncConnection, tenant: str, webhook_id: str) -> bool:
    """Removes a webhook with all its messages; whether there was one of that id."""
    removed = await connection.execute(
        delete(Webhook).where(Webhook.tenant == tenant, Webhook.id == webhook_id).returning(Webhook.id)
    )
    return removed.first() is not None


async def insert_delivery(
    connection: AsyncConnection, tenant: str, webhook_id: str, message_id: str, event: str, payload: str
) -> contract.Delivery:
    """Writes a message that is about no job."""
    rows = await connection.execute(
        insert(WebhookDelivery)
        .values(id=message_id, tenant=tenant, webhook_id=webhook_id, event=event, payload=payload)
        .returning(*_DELIVERY)
    )
    return contract.Delivery.of_row(rows.one())


async def list_deliveries(
    connection: AsyncConnection,
    tenant: str,
    webhook_id: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[contract.Delivery]:
    """A webhook's messages, newest first; ``after`` is (created_at, id) of the last one of the page before."""
    delivery = WebhookDelivery
    query = select(*_DELIVERY).where(delivery.tenant == tenant, delivery.webhook_id == webhook_id)
    query = page_of(query, delivery.created_at, delivery.id, limit=limit, after=after)
    rows = await connection.execute(query)
    return [contract.Delivery.of_row(row) for row in rows]


async def claim_due(
    connection: AsyncConnection,
    *,
    going: Collection[str],
    lane: Collection[str],
    slow: Collection[str],
    is_slow: bool,
    limit: int,
    seconds: float,
) -> list[DueDelivery]:
    """Claims due messages of one lane, at most one of each receiver.

    First come the tenants with the fewest receivers under way in the lane, and of a tenant's messages the one due longest.

    Args:
        connection: Where.
        going: Receivers that have an attempt under way.
        lane: Those of them in this lane.
        slow: Receivers that belong into the slow lane.
        is_slow: Whether to claim for the slow lane.
        limit: Most messages.
        seconds: Time until a claimed message is due again.
    """
    rows = await connection.execute(
        text(
            "WITH first AS (SELECT DISTINCT ON (d.webhook_id) d.id, d.due_at, d.tenant FROM webhook_deliveries d"
            "  JOIN webhooks w ON w.id = d.webhook_id AND w.disabled_reason IS NULL"
            "  WHERE d.state = 'waiting' AND d.due_at <= clock_timestamp() AND d.webhook_id <> ALL(:going)"
            "  AND (d.webhook_id = ANY(:slow)) = :is_slow ORDER BY d.webhook_id, d.due_at, d.id),"
            " placed AS (SELECT id, due_at, row_number() OVER (PARTITION BY tenant ORDER BY due_at, id) + (SELECT count(*)"
            "  FROM webhooks b WHERE b.id = ANY(:lane) AND b.tenant = first.tenant) AS place FROM first),"
            " ours AS (SELECT id FROM webhook_deliveries WHERE id IN"
            "  (SELECT id FROM placed ORDER BY place, due_at LIMIT :limit)"
            "  AND state = 'waiting' AND due_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)"
            " UPDATE webhook_deliveries d SET attempts = attempts + 1, attempted_at = clock_timestamp(),"
            " due_at = clock_timestamp() + make_interval(secs => :seconds)"
            " FROM ours, webhooks w WHERE d.id = ours.id AND w.id = d.webhook_id"
            " RETURNING d.id, d.attempts, d.webhook_id, w.url,"
            "  CASE WHEN w.former_secret_until > clock_timestamp() THEN ARRAY[w.secret, w.former_secret]"
            "  ELSE ARRAY[w.secret] END, d.payload"
        ),
        {"going": list(going), "lane": list(lane), "slow": list(slow), "is_slow": is_slow}
        | {"limit": limit, "seconds": seconds},
    )
    return [DueDelivery(*row) for row in rows]


async def note_attempt(
    connection: AsyncConnection,
    due: DueDelivery,
    *,
    http_status: int | None,
    error: str | None,
    again_after: float | None,
) -> None:
    """Notes how an attempt went, unless another one has been begun since.

    Args:
        connection: Where.
        due: The attempt.
        http_status: What the receiver answered, if it did.
        error: Why it failed; ``None`` if the message was delivered.
        again_after: Seconds until the next attempt; ``None`` if there is to be none.
    """
    state = "delivered" if error is None else "given_up" if again_after is None else "waiting"
    await connection.execute(
        text(
            "UPDATE webhook_deliveries SET state = :state, http_status = :status, error = :error,"
            " due_at = CASE WHEN :state = 'waiting' THEN clock_timestamp() + make_interval(secs => :after)"
            "  ELSE due_at END,"
            " ended_at = CASE WHEN :state <> 'waiting' THEN clock_timestamp() END"
            " WHERE id = :id AND attempts = :attempt AND state = 'waiting'"
        ),
        {"id": due.id, "attempt": due.attempt, "state": state, "status": http_status, "error": error}
        | {"after": again_after or 0.0},
    )


async def disable_gone(connection: AsyncConnection, webhook_id: str) -> None:
    """Tells a receiver nothing any more that has said that it is gone."""
    await connection.execute(
        update(Webhook)
        .where(Webhook.id == webhook_id, Webhook.disabled_reason.is_(None))
        .values(disabled_reason="gone", updated_at=text("clock_timestamp()"))
    )
    await give_up_waiting(connection, webhook_id, "gone")


async def give_up_waiting(connection: AsyncConnection, webhook_id: str, error: str) -> None:
    """Gives up what a webhook has not been told yet."""
    await connection.execute(
        text(
            "UPDATE webhook_deliveries SET state = 'given_up', error = :error, ended_at = clock_timestamp()"
            " WHERE webhook_id = :webhook AND state = 'waiting'"
        ),
        {"webhook": webhook_id, "error": error},
    )


async def recent_tests(connection: AsyncConnection, webhook_id: str, seconds: int) -> tuple[int, int]:
    """How many tests a webhook was sent in the last seconds, and after how many the first of them is as long ago."""
    rows = await connection.execute(
        text(
            "SELECT count(*), coalesce(ceil(:seconds - extract(epoch FROM clock_timestamp() - min(created_at))), 0)::int"
            " FROM webhook_deliveries WHERE webhook_id = :webhook AND event = :event"
            " AND created_at > clock_timestamp() - make_interval(secs => :seconds)"
        ),
        {"webhook": webhook_id, "event": TEST_EVENT, "seconds": seconds},
    )
    count, left = rows.one()
    return int(count), int(left)


async def forget_ended(connection: AsyncConnection, days: int) -> None:
    """Removes messages that were delivered or given up more than so many days ago, and secrets that sign no more.

    Gives up what waits for webhooks that are off, too: one that was just being switched off may have got a message more.
    """
    await connection.execute(
        text(
            "UPDATE webhooks SET former_secret = NULL, former_secret_until = NULL"
            " WHERE former_secret_until < clock_timestamp()"
        )
    )
    await connection.execute(
        text(
            "UPDATE webhook_deliveries d SET state = 'given_up', error = :error, ended_at = clock_timestamp()"
            " FROM webhooks w WHERE w.id = d.webhook_id AND w.disabled_reason IS NOT NULL AND d.state = 'waiting'"
        ),
        {"error": SWITCHED_OFF},
    )
    await connection.execute(
        text(
            "DELETE FROM webhook_deliveries WHERE ended_at < clock_timestamp() - make_interval(days => :days)"
        ),
        {"days": days},
    )


async def lock_secrets(connection: AsyncConnection) -> list[tuple[str, str, str | None]]:
    """Ids of all tenants' webhooks with their secret and their former one, for as long as the transaction lasts."""
    rows = await connection.execute(
        select(Webhook.id, Webhook.secret, Webhook.former_secret).order_by(Webhook.id).with_for_update()
    )
    return [(row.id, row.secret, row.former_secret) for row in rows]


async def set_secrets(
    connection: AsyncConnection, webhook_id: str, secret: str, former_secret: str | None
) -> None:
    """Stores a webhook's secrets in another form."""
    changed = update(Webhook).where(Webhook.id == webhook_id)
    await connection.execute(changed.values(secret=secret, former_secret=former_secret))
