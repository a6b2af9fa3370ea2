"""`/keys`: which API keys there are; a new one, which is shown once; and the end of one."""

from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app import clock
from app.api.console.forms import typed_by
from app.api.console.job_form import Typed, number_of
from app.api.http import cursors
from app.api.http.access import needs, no_pepper
from app.api.http.cursors import After
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import validated
from app.api.keys.routes import KeyId
from app.db.keys import api_keys
from app.domain.errors import FieldError, InvalidJobError
from app.domain.keys.api_key import Scope
from app.domain.keys.contract import ApiKeyIn, NewApiKey
from app.services.errors import BeyondOwnLimitsError
from app.services.keys.api_keys import NoPepperError, create_key, revoke_key, show_key

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

KEYS_A_PAGE = 50
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "a year", "": "no end"}
"""How long a key lives, by its days."""

Json = dict[str, Any]


@router.get("/keys")
@needs(Scope.ADMIN)
async def keys(services: ServicesDep, tenant: TenantDep, after: After = None) -> Response:
    """The keys of the tenant, newest first, and the form that makes one."""
    return await _shown(services, tenant, Typed({"days": ["90"]}), after=after)


@router.post("/keys")
@needs(Scope.ADMIN)
async def create(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """Makes a key and shows it, or what is wrong with what was typed."""
    typed = await typed_by(request)
    body = _body(typed)
    try:
        made = await create_key(services.keys, tenant, validated(ApiKeyIn, body), caller.key_id)
    except (InvalidJobError, BeyondOwnLimitsError) as error:
        wrong = error.errors
    except NoPepperError as error:
        raise no_pepper(error) from error
    else:
        services.keyring.forget()
        return await _shown(services, tenant, Typed({"days": ["90"]}), made=made)
    return await _shown(services, tenant, typed, HTTPStatus.UNPROCESSABLE_ENTITY, errors=wrong)


@router.post("/keys/{key_id}/revoke")
@needs(Scope.ADMIN)
async def revoke(key_id: KeyId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Ends a key for good, and shows the keys again."""
    await revoke_key(services.engine, tenant, key_id)
    services.keyring.forget()
    return RedirectResponse("/keys", HTTPStatus.SEE_OTHER)


def _body(typed: Typed) -> Json:
    """What was typed as ``POST /v1/api-keys`` takes it."""
    body: Json = {"name": typed.text("name"), "scopes": [typed.text("scope")]}
    days = typed.text("days")
    if days:
        known = days in LIFETIMES
        body["expires_at"] = clock.now() + timedelta(days=int(days)) if known else days
    if typed.text("requests_per_minute"):
        body["requests_per_minute"] = number_of(typed.text("requests_per_minute"), int)
    if typed.text("usd_limit"):
        body["spending"] = {"usd_limit": number_of(typed.text("usd_limit"), float)}
    return body


async def _shown(
    services: Services,
    tenant: str,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    after: str | None = None,
    made: NewApiKey | None = None,
    errors: Sequence[FieldError] = (),
) -> Response:
    async with services.engine.connect() as connection:
        found = await api_keys.list_keys(
            connection, tenant, limit=KEYS_A_PAGE + 1, after=cursors.beginning(after)
        )
    keys, following = cursors.cut(found, KEYS_A_PAGE, cursors.of_entry)
    return page(
        "keys.html.j2",
        status,
        here="/connections",
        keys=[show_key(row) for row in keys],
        later=after is not None,
        following=following,
        lifetimes=LIFETIMES,
        typed=typed,
        made=made,
        errors=errors,
    )
