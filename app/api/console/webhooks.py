"""`/webhooks`: who is told of jobs, what became of the messages, and how to test, switch off and make a webhook."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed
from app.api.http import cursors
from app.api.http.access import Caller, needs
from app.api.http.cursors import After
from app.api.http.dependencies import (
    CallerDep,
    Services,
    ServicesDep,
    TenantDep,
    for_caller,
    no_unknown_parameters,
)
from app.api.http.pages import page
from app.api.http.problems import validated
from app.api.webhooks.routes import WebhookId
from app.db.webhooks import webhooks
from app.domain.errors import FieldError, InvalidJobError
from app.domain.keys.api_key import Scope
from app.domain.webhooks.contract import Webhook, WebhookChangeIn, WebhookIn
from app.domain.webhooks.webhook import WebhookEvent
from app.services.webhooks.webhooks import (
    MOST_WEBHOOKS,
    change_webhook,
    create_webhook,
    delete_webhook,
    find_webhook,
    rotate_secret,
    send_test,
)

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

MESSAGES_A_PAGE = 50

Action = Literal["test", "off", "on", "delete", "rotate"]


@router.get("/webhooks")
@needs(Scope.READ)
async def list_(services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """The webhooks, newest first, and for who may make one the form."""
    return await _listed(services, tenant, caller, Typed({"event": list(WebhookEvent)}))


@router.post("/webhooks")
@needs(Scope.ADMIN)
async def create(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """Makes a webhook and shows its secret, or what is wrong with what was typed."""
    typed = await typed_by(request)
    body = {
        "url": typed.text("url"),
        "events": typed.all("event"),
        "description": typed.text("description") or None,
    }
    try:
        deps = for_caller(services.webhooks, services, caller)
        made = await create_webhook(deps, tenant, validated(WebhookIn, body))
    except InvalidJobError as error:
        wrong = error.errors
    else:
        return await _one(services, tenant, caller, made, secret=made.secret)
    return await _listed(services, tenant, caller, typed, HTTPStatus.UNPROCESSABLE_ENTITY, errors=wrong)


@router.get("/webhooks/{webhook_id}")
@needs(Scope.READ)
async def one(
    webhook_id: WebhookId, services: ServicesDep, tenant: TenantDep, caller: CallerDep, after: After = None
) -> Response:
    """A webhook and what became of its messages, newest first."""
    found = await find_webhook(services.engine, tenant, webhook_id)
    return await _one(services, tenant, caller, found, after=after)


@router.post("/webhooks/{webhook_id}/{action}")
@needs(Scope.ADMIN)
async def act(
    webhook_id: WebhookId, action: Action, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> Response:
    """Sends a test, switches a webhook off or on, gives it another secret, or deletes it."""
    if action == "rotate":
        changed = await rotate_secret(services.webhooks, tenant, webhook_id)
        return await _one(services, tenant, caller, changed, secret=changed.secret)
    if action == "test":
        await send_test(services.engine, tenant, webhook_id)
    elif action == "delete":
        await delete_webhook(services.engine, tenant, webhook_id)
    else:
        deps = for_caller(services.webhooks, services, caller)
        await change_webhook(deps, tenant, webhook_id, WebhookChangeIn(enabled=action == "on"))
    place = "/webhooks" if action == "delete" else f"/webhooks/{webhook_id}"
    return RedirectResponse(place, HTTPStatus.SEE_OTHER)


async def _listed(
    services: Services,
    tenant: str,
    caller: Caller,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    errors: Sequence[FieldError] = (),
) -> Response:
    async with services.engine.connect() as connection:
        found = await webhooks.list_webhooks(connection, tenant, limit=MOST_WEBHOOKS, after=None)
    return page(
        "webhooks.html.j2",
        status,
        here="/connections",
        webhooks=found,
        events=list(WebhookEvent),
        typed=typed,
        errors=errors,
        manages=caller.manages,
    )


async def _one(
    services: Services,
    tenant: str,
    caller: Caller,
    webhook: Webhook,
    *,
    after: str | None = None,
    **shown: Any,
) -> Response:
    async with services.engine.connect() as connection:
        found = await webhooks.list_deliveries(
            connection, tenant, webhook.id, limit=MESSAGES_A_PAGE + 1, after=cursors.beginning(after)
        )
    messages, following = cursors.cut(found, MESSAGES_A_PAGE, cursors.of_entry)
    return page(
        "webhook.html.j2",
        here="/connections",
        webhook=webhook,
        messages=messages,
        later=after is not None,
        following=following,
        manages=caller.manages,
        **({"secret": None} | shown),
    )
