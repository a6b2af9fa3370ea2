"""`/v1/api-keys`: who may ask, and for what."""

from typing import Annotated

from fastapi import Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs, no_pepper
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
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

router = resource("/api-keys", "keys")

KeyId = Annotated[str, Path(description="A key's id."), AfterValidator(id_check("key", id_form("key")))]


@router.post("", operation_id="createApiKey", status_code=201, summary="Create a key")
@needs(Scope.ADMIN)
async def create(
    body: ApiKeyIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep, response: Response
) -> NewApiKey:
    """Creates a key for the same tenant. The key is in this answer only; the service stores just enough to check it.

    A limited key can create keys only within its own limits: an expiry, a rate and a cap no higher than its own. What they spend counts against its own cap.

    Once the first key exists, every request needs one.
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
    """Keys, newest first, including expired and revoked ones."""
    async with services.engine.connect() as connection:
        found = await api_keys.list_keys(connection, tenant, limit=limit + 1, after=cursors.beginning(after))
    return cursors.newest_first(ApiKeyList, found, limit, show_key)


@router.get("/{key_id}", operation_id="getApiKey", responses=NOT_FOUND, summary="Get a key")
@needs(Scope.ADMIN)
async def get(key_id: KeyId, services: ServicesDep, tenant: TenantDep) -> ApiKey:
    """A key's scopes, limits and status, without the key itself."""
    return await find_key(services.engine, tenant, key_id)


@router.patch("/{key_id}", operation_id="changeApiKey", responses=NOT_FOUND, summary="Change a key")
@needs(Scope.ADMIN)
async def change(
    key_id: KeyId, body: ApiKeyChangeIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> ApiKey:
    """Changes a key's name and limits. Jobs that paused because of its cap continue when they are resumed.

    A key that has a spending cap can only lower caps, including its own.
    """
    changed = await change_key(services.engine, tenant, key_id, body, caller.key_id)
    services.keyring.forget()
    return changed


@router.post("/{key_id}/rotate", operation_id="rotateApiKey", responses=NOT_FOUND, summary="Rotate a key")
@needs(Scope.ADMIN)
async def rotate(
    key_id: KeyId, body: RotationIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> NewApiKey:
    """Replaces a key by a new one with the same scopes and limits; the new key is in this answer only.

    The replaced key stays valid for `overlap_seconds`; one replaced earlier stops working at once. A key that has expired or was revoked is a 404.
    A limited key can rotate itself and keys with the same limits; a key with a spending cap only itself.
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
    """Revokes a key and its sessions permanently, everywhere within a second. Jobs that it submitted continue."""
    revoked = await revoke_key(services.engine, tenant, key_id)
    services.keyring.forget()
    return revoked
