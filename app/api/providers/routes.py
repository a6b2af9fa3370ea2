"""`/v1/connections`: model providers beside those in the operator's file."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response
from pydantic import AfterValidator

from app.api.http.access import needs
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, for_caller
from app.api.http.openapi import CONFLICT, NOT_FOUND
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.api.providers.requests import ConnectionChangeIn, ConnectionIn
from app.domain.keys.api_key import Scope
from app.domain.providers.contract import KeptConnection, KeptConnectionList
from app.services.providers.connections import (
    change_connection,
    create_connection,
    delete_connection,
    find_connection,
    list_connections,
)

router = resource("/connections", "connections")

ConnectionName = Annotated[
    str,
    Path(description="A connection's name.", examples=["lab-vllm"]),
    AfterValidator(id_check("connection", r"[a-z0-9][a-z0-9_-]{0,62}")),
]


@router.post(
    "",
    operation_id="createConnection",
    status_code=201,
    response_model_exclude_unset=True,
    responses=CONFLICT,
    summary="Create a connection",
)
@needs(Scope.ADMIN)
async def create(
    body: ConnectionIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep, response: Response
) -> KeptConnection:
    """Adds a provider whose models jobs can name as `name/model`, besides those in the operator's file.

    The provider's key is stored encrypted, is sent only to the URL's scheme, host and port, and is never returned. Workers use the
    connection at once. A name that the operator's file uses is a 409.
    """
    deps = for_caller(services.making_connections, services, caller)
    made = await create_connection(deps, tenant, body.values(), body.api_key)
    response.headers["Location"] = f"/v1/connections/{made.name}"
    return made


@router.get(
    "", operation_id="listConnections", response_model_exclude_unset=True, summary="List your connections"
)
@needs(Scope.ADMIN)
async def list_(services: ServicesDep, tenant: TenantDep) -> KeptConnectionList:
    """Connections created through the API, by name. `GET /v1/models` also lists the operator's."""
    return await list_connections(services.engine, tenant)


@router.get(
    "/{connection_name}",
    operation_id="getConnection",
    response_model_exclude_unset=True,
    responses=NOT_FOUND,
    summary="Get a connection",
)
@needs(Scope.ADMIN)
async def get(connection_name: ConnectionName, services: ServicesDep, tenant: TenantDep) -> KeptConnection:
    """A connection, without its key."""
    return await find_connection(services.engine, tenant, connection_name)


@router.patch(
    "/{connection_name}",
    operation_id="changeConnection",
    response_model_exclude_unset=True,
    responses=NOT_FOUND,
    summary="Change a connection",
)
@needs(Scope.ADMIN)
async def change(
    connection_name: ConnectionName,
    body: ConnectionChangeIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
) -> KeptConnection:
    """Changes the fields that are given.

    Running jobs keep the URL, limits and prices that they were submitted with. A new key reaches them within
    seconds, unless the connection's scheme, host or port has changed; then the key must be given again.
    """
    deps = for_caller(services.making_connections, services, caller)
    return await change_connection(deps, tenant, connection_name, body.changes())


@router.delete(
    "/{connection_name}",
    operation_id="deleteConnection",
    status_code=204,
    responses=NOT_FOUND,
    summary="Delete a connection",
)
@needs(Scope.ADMIN)
async def delete(connection_name: ConnectionName, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes a connection with its keys. Jobs that still call it pause within seconds."""
    await delete_connection(services.engine, tenant, connection_name)
    return Response(status_code=HTTPStatus.NO_CONTENT)
