"""`/v1/webhooks`: messages about jobs and schedules."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, for_caller
from app.api.http.openapi import CONFLICT, NOT_FOUND, TOO_OFTEN
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.api.jobs.routes import IdempotencyKey
from app.db.webhooks import webhooks
from app.domain.keys.api_key import Scope
from app.domain.webhooks.contract import (
    Delivery,
    DeliveryList,
    NewWebhook,
    Webhook,
    WebhookChangeIn,
    WebhookIn,
    WebhookList,
)
from app.services.idempotency import ClientKey
from app.services.identifiers import id_form
from app.services.webhooks.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    find_webhook,
    rotate_secret,
    send_test,
)

router = resource("/webhooks", "webhooks")

WebhookId = Annotated[
    str, Path(description="A webhook's id."), AfterValidator(id_check("webhook", id_form("whk")))
]


@router.post("", operation_id="createWebhook", status_code=201, summary="Create a webhook")
@needs(Scope.ADMIN)
async def create(
    request: StrictRequest,
    body: WebhookIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> NewWebhook:
    """Sends a message to a URL when a job ends or pauses, a schedule does not run, or drift is detected.

    A message is `{"type", "timestamp", "data"}`; `data` has the job's id, status and labels, or the schedule's id and its run, and
    `links.self` leads to the rest. Messages are signed by Standard Webhooks with the `secret` that only this answer shows, and are
    delivered at least once; `webhook-id` identifies repetitions. Any 2xx within 15 s accepts a message; otherwise it is sent again,
    up to nine times within three days. A 410 disables the webhook. Redirects are not followed.
    """
    key = ClientKey.of(idempotency_key, await request.sent())
    made = await create_webhook(for_caller(services.webhooks, services, caller), tenant, body, key)
    response.headers["Location"] = f"/v1/webhooks/{made.id}"
    return made


@router.get("", operation_id="listWebhooks", summary="List webhooks")
@needs(Scope.READ)
async def list_(
    services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
) -> WebhookList:
    """Webhooks, newest first."""
    async with services.engine.connect() as connection:
        found = await webhooks.list_webhooks(
            connection, tenant, limit=limit + 1, after=cursors.beginning(after)
        )
    return cursors.newest_first(WebhookList, found, limit)


@router.get("/{webhook_id}", operation_id="getWebhook", responses=NOT_FOUND, summary="Get a webhook")
@needs(Scope.READ)
async def get(webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep) -> Webhook:
    """A webhook, without its secret."""
    return await find_webhook(services.engine, tenant, webhook_id)


@router.patch("/{webhook_id}", operation_id="changeWebhook", responses=NOT_FOUND, summary="Change a webhook")
@needs(Scope.ADMIN)
async def change(
    webhook_id: WebhookId,
    body: WebhookChangeIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
) -> Webhook:
    """Changes the fields that are given; `/rotate-secret` changes the secret."""
    return await change_webhook(for_caller(services.webhooks, services, caller), tenant, webhook_id, body)


@router.delete(
    "/{webhook_id}",
    operation_id="deleteWebhook",
    status_code=204,
    responses=NOT_FOUND,
    summary="Delete a webhook",
)
@needs(Scope.ADMIN)
async def delete(webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes a webhook and its undelivered messages."""
    await delete_webhook(services.engine, tenant, webhook_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(
    "/{webhook_id}/rotate-secret",
    operation_id="rotateWebhookSecret",
    responses=NOT_FOUND,
    summary="Rotate a webhook's secret",
)
@needs(Scope.ADMIN)
async def rotate(webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep) -> NewWebhook:
    """Creates a new `secret`, which only this answer shows.

    For 24 hours, messages carry two signatures, by the new and by the previous secret, so that receivers with either accept
    them. Any older secret stops working at once.
    """
    return await rotate_secret(services.webhooks, tenant, webhook_id)


@router.post(
    "/{webhook_id}/test",
    operation_id="testWebhook",
    status_code=202,
    responses=NOT_FOUND | CONFLICT | TOO_OFTEN,
    summary="Send a test message",
)
@needs(Scope.ADMIN)
async def send_test_message(webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep) -> Delivery:
    """Queues a message `webhook.test`; `/deliveries` shows its outcome.

    At most ten a minute, and only to an enabled webhook.
    """
    return await send_test(services.engine, tenant, webhook_id)


@router.get(
    "/{webhook_id}/deliveries",
    operation_id="listDeliveries",
    responses=NOT_FOUND,
    summary="List deliveries",
)
@needs(Scope.READ)
async def list_deliveries(
    webhook_id: WebhookId,
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> DeliveryList:
    """A webhook's messages, newest first: waiting, delivered or given up. Finished deliveries are kept for 30 days."""
    await find_webhook(services.engine, tenant, webhook_id)
    async with services.engine.connect() as connection:
        found = await webhooks.list_deliveries(
            connection, tenant, webhook_id, limit=limit + 1, after=cursors.beginning(after)
        )
    return cursors.newest_first(DeliveryList, found, limit)
