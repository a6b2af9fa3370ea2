"""`/connections`: the models' connections, whether their servers answer and take their keys, and one short call to a model."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from app.api.console.forms import typed_by
from app.api.console.new_job import model_findings
from app.api.http.access import Caller, needs
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.providers.model_routes import keep_check_rate
from app.domain.keys.api_key import Scope
from app.llm.connections.connections import Connection
from app.ports import ModelCallError
from app.services.providers.connections import list_connections
from app.services.providers.probing import Probed, probe_all

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

Json = dict[str, Any]


@router.get("/connections")
@needs(Scope.READ)
async def connections(services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """The connections that jobs can name."""
    return await _shown(services, tenant, caller)


@router.post("/connections")
@needs(Scope.SUBMIT)
async def test(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """Tries every connection's key, which costs nothing, or calls a model once; shows the connections with what was found."""
    typed = await typed_by(request)
    name, model = typed.text("connection"), typed.text("model")
    if name:
        found = await model_findings(services, caller, "model", {"model": f"{name}/{model}"})
        return await _shown(services, tenant, caller, tested=name, model=model, findings=found)
    await keep_check_rate(services, tenant)
    keys = {each.name: each async for each in _keys_tried(services, tenant)}
    return await _shown(services, tenant, caller, keys=keys)


async def _keys_tried(services: Services, tenant: str) -> AsyncIterator[Probed]:
    known = await services.book.of_tenant(tenant)
    tried: list[Connection] = []
    for name, _ in known.permitted():
        listed = known.by_id[name]
        try:
            tried.append(await services.book.with_key(listed.id, tenant) or listed)
        except ModelCallError as error:
            yield Probed(name, False, str(error))
    for each in await probe_all(tried, services.checking.transport):
        yield each


async def _shown(services: Services, tenant: str, caller: Caller, **found: Any) -> Response:
    known = await services.book.of_tenant(tenant)
    own = {each.name: each for each in (await list_connections(services.engine, tenant)).data}
    listed = [(known.by_id[name], name, models) for name, models in known.permitted()]
    shown: Json = {"keys": {}, "tested": "", "model": "", "findings": []} | found
    return page(
        "connections.html.j2",
        here="/connections",
        listed=listed,
        own=own if caller.manages else dict.fromkeys(own),
        manages=caller.manages,
        **shown,
    )
