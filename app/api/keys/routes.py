"""`/v1/api-keys`: who may ask, and for what."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs, no_pepper
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.openapi import NOT_FOUND, PROBLEMS
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRoute
from app.db.keys import api_keys
from app.domain.keys.api_key import Scope
from app.domain.keys.contract import ApiKey, ApiKeyChangeIn, ApiKeyIn, ApiKeyList, NewApiKey, RotationIn
from app.services.identifiers import id_form
from app.services.keys.api_keys import (
    NoPepperError,
    change_key,
    create_key,
    find_key,
    revoke_key,
    rotate_key,
    show_key,
)

router = APIRouter(
    prefix="/v1/api-keys",
    tags=["keys"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

KeyId = Annotated[str, Path(description="A key's id."), AfterValidator(id_check("key", id_form("key")))]


@router.post("", operation_id="createApiKey", status_code=201, summary="Make a key")
@needs(Scope.ADMIN)
async def create(
    body: ApiKeyIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep, response: Response
) -> NewApiKey:
    """Makes a key of the same tenant. Only this answer has it: what is kept can check it, and no more.

    A limited key makes keys within its limits only: with an end, a rate and a cap of at most its own. Their caps count as spent by it.

    With the first key, nobody is let in without one any more.
    """
    try:
        made = await create_key(services.keys, tenant, body, caller.key_id)
    except NoPepperError as error:
        raise no_pepper(error) from error
    services.keyring.forget()
    response.headers["Location"] = f"/v1/api-keys/{made.id}"
    return made


@router.get("", operation_id="listApiKeys", summary="List keys")
@needs(Scope.ADMIN)
async def list_(
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> ApiKeyList:
    """Keys, newest first; ended ones too."""
    async with services.engine.connect() as connection:
        found = await api_keys.list_keys(connection, tenant, limit=limit + 1, after=cursors.beginning(after))
    return cursors.newest_first(ApiKeyList, found, limit, show_key)


@router.get("/{key_id}", operation_id="getApiKey", responses=NOT_FOUND, summary="Read a key")
@needs(Scope.ADMIN)
async def get(key_id: KeyId, services: ServicesDep, tenant: TenantDep) -> ApiKey:
    """What a key may do, and what became of it; not the key."""
    return await find_key(services.engine, tenant, key_id)


@router.patch("/{key_id}", operation_id="changeApiKey", responses=NOT_FOUND, summary="Change a key")
@needs(Scope.ADMIN)
async def change(
    key_id: KeyId, body: ApiKeyChangeIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> ApiKey:
    """Changes its name and limits. Jobs that paused for its cap go on when they are resumed.

    A key with a spending cap lowers caps only, its own included.
    """
    changed = await change_key(services.engine, tenant, key_id, body, caller.key_id)
    services.keyring.forget()
    return changed


@router.post("/{key_id}/rotate", operation_id="rotateApiKey", responses=NOT_FOUND, summary="Rotate a key")
@needs(Scope.ADMIN)
async def rotate(
    key_id: KeyId, body: RotationIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> NewApiKey:
    """Makes another key in its place, with the same rights and limits; only this answer has it.

    The former one is still taken for `overlap_seconds`, one before that not any more. A key that has ended is a 404.
    A limited key rotates itself, and keys that are as limited; one with a spending cap no other.
    """
    try:
        made = await rotate_key(services.keys, tenant, key_id, body.overlap_seconds, caller.key_id)
    except NoPepperError as error:
        raise no_pepper(error) from error
    services.keyring.forget()
    return made


@router.delete("/{key_id}", operation_id="revokeApiKey", responses=NOT_FOUND, summary="Revoke a key")
@needs(Scope.ADMIN)
async def revoke(key_id: KeyId, services: ServicesDep, tenant: TenantDep) -> ApiKey:
    """Ends a key for good, with its sessions; within a second everywhere. Jobs that it submitted go on."""
    revoked = await revoke_key(services.engine, tenant, key_id)
    services.keyring.forget()
    return revoked
