"""`/v1/webhooks`: messages about jobs."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, for_caller, no_unknown_parameters
from app.api.http.openapi import CONFLICT, NOT_FOUND, PROBLEMS, TOO_OFTEN
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRequest, StrictRoute
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

router = APIRouter(
    prefix="/v1/webhooks",
    tags=["webhooks"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

WebhookId = Annotated[
    str, Path(description="A webhook's id."), AfterValidator(id_check("webhook", id_form("whk")))
]


@router.post("", operation_id="createWebhook", status_code=201, summary="Make a webhook")
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
    """Has messages posted to a URL when jobs are completed, failed, cancelled or paused.

    A message is `{"type", "timestamp", "data"}`; `data` has the job's id, status and labels, the rest is at `links.self`. It
    is signed by Standard Webhooks with the `secret` that only this answer shows, and comes at least once: `webhook-id`
    tells repetitions. Any 2xx within 15 s takes it; else it comes again nine times within three days. A 410 switches
    the webhook off. No redirect is followed.
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
    return cursors.newest_first(WebhookList, found, limit, lambda webhook: webhook)


@router.get("/{webhook_id}", operation_id="getWebhook", responses=NOT_FOUND, summary="Read a webhook")
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
    """Changes what is named; `/rotate-secret` changes the secret."""
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
    """Deletes a webhook; messages that wait for it are not delivered any more."""
    await delete_webhook(services.engine, tenant, webhook_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(
    "/{webhook_id}/rotate-secret",
    operation_id="rotateWebhookSecret",
    responses=NOT_FOUND,
    summary="Replace a webhook's secret",
)
@needs(Scope.ADMIN)
async def rotate(webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep) -> NewWebhook:
    """Gives it a new `secret`, which only this answer shows.

    For 24 hours messages carry two signatures, by the new secret and by the one before: a receiver that knows either
    takes them. An older one than that is over at once.
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
    """Has a message `webhook.test` delivered like any other; `/deliveries` says what became of it.

    Ten a minute at most, and none to a webhook that is off.
    """
    return await send_test(services.engine, tenant, webhook_id)


@router.get(
    "/{webhook_id}/deliveries",
    operation_id="listDeliveries",
    responses=NOT_FOUND,
    summary="See what became of messages",
)
@needs(Scope.READ)
async def list_deliveries(
    webhook_id: WebhookId,
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> DeliveryList:
    """A webhook's messages, newest first: waiting, delivered or given up. Ended ones are kept for 30 days."""
    await find_webhook(services.engine, tenant, webhook_id)
    async with services.engine.connect() as connection:
        found = await webhooks.list_deliveries(
            connection, tenant, webhook_id, limit=limit + 1, after=cursors.beginning(after)
        )
    return cursors.newest_first(DeliveryList, found, limit, lambda delivery: delivery)
