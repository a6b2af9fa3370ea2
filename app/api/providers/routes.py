"""`/v1/connections`: model providers beside those in the operator's file."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http.access import needs
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, for_caller, no_unknown_parameters
from app.api.http.openapi import CONFLICT, NOT_FOUND, PROBLEMS
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRoute
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

router = APIRouter(
    prefix="/v1/connections",
    tags=["connections"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

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
    summary="Make a connection",
)
@needs(Scope.ADMIN)
async def create(
    body: ConnectionIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep, response: Response
) -> KeptConnection:
    """Lets jobs name models of a provider as `name/model`, beside those of the operator's file.

    The key is kept encrypted, goes to the URL's scheme, host and port alone, and is in no answer. Workers know the
    connection at once. A name of the operator's is a 409.
    """
    deps = for_caller(services.making_connections, services, caller)
    made = await create_connection(deps, tenant, body.values(), body.api_key)
    response.headers["Location"] = f"/v1/connections/{made.name}"
    return made


@router.get(
    "", operation_id="listConnections", response_model_exclude_unset=True, summary="List own connections"
)
@needs(Scope.ADMIN)
async def list_(services: ServicesDep, tenant: TenantDep) -> KeptConnectionList:
    """Connections that were made here, by name. `GET /v1/models` has the operator's as well."""
    return await list_connections(services.engine, tenant)


@router.get(
    "/{connection_name}",
    operation_id="getConnection",
    response_model_exclude_unset=True,
    responses=NOT_FOUND,
    summary="Read a connection",
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
    """Changes what is named.

    Jobs under way keep URL, limits and prices as they were when they were submitted. A new key reaches them within
    seconds, unless the connection leads elsewhere by now: with another scheme, host or port the key has to be given anew.
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
    """Deletes a connection with its keys; jobs that still call it pause within seconds."""
    await delete_connection(services.engine, tenant, connection_name)
    return Response(status_code=HTTPStatus.NO_CONTENT)
