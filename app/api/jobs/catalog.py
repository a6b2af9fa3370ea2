"""`/v1/personas`, `/v1/tasks`, `/v1/models`, `/v1/baselines`: what is built in or configured."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.openapi import PROBLEMS, answers_with
from app.domain.instruments.contract import (
    DimensionAnswer,
    PersonaAnswer,
    PersonaList,
    TaskAnswer,
    TaskList,
)
from app.domain.keys.api_key import Scope
from app.domain.personagym.prompts import rubric_outline
from app.domain.personagym.specification import EXPECTED_UNITS
from app.domain.providers.contract import ConnectionAnswer, ConnectionList
from app.domain.results.baselines import Baselines
from app.services.results.baselines import BaselineFilter, baselines_json, with_own
from app.services.results.named_baselines import list_baselines

router = APIRouter(
    prefix="/v1", tags=["catalog"], dependencies=[Depends(no_unknown_parameters)], responses=PROBLEMS
)


@router.get("/personas", operation_id="listPersonas", summary="List personas")
@needs(Scope.READ)
async def personas(services: ServicesDep) -> PersonaList:
    """Built-in personas, their sets, and the instructions that assign them (atomic paper, Table 12)."""
    catalog = services.submission.catalog
    sets = {name: list(ids) for name, ids in catalog.persona_sets.items()}
    data = [
        PersonaAnswer.of(
            persona,
            catalog.dimensions.values(),
            sets=[name for name, ids in sets.items() if persona.id in ids],
        )
        for persona in catalog.personas.values()
    ]
    return PersonaList(data=data, sets=sets, instructions=list(services.instrument.instructions))


@router.get("/tasks", operation_id="listTasks", summary="List tasks")
@needs(Scope.READ)
async def tasks(services: ServicesDep) -> TaskList:
    """Tasks with their prompts, and the dimensions that they measure (atomic paper, Tables 9–11 and 13)."""
    instrument, gym = services.instrument, services.gym
    atomic = [
        TaskAnswer(
            id=task.id,
            title=task.title,
            framework="atomic",
            prompt=task.prompt,
            scoring_prompt=task.scoring_prompt,
            expected_units=task.expected_units,
        )
        for task in instrument.tasks.values()
    ]
    graded = [
        TaskAnswer(
            id=task.id,
            title=task.title,
            framework="personagym",
            prompt=None,
            scoring_prompt=rubric_outline(gym.prompts, task),
            expected_units=EXPECTED_UNITS,
        )
        for task in gym.tasks.values()
    ]
    dimensions = [
        DimensionAnswer.of(
            dimension,
            name=dimension.name,
            minimum=dimension.scale.minimum,
            maximum=dimension.scale.maximum,
            levels=list(dimension.scale.levels),
            options=dimension.options,
            questions=list(dimension.questions),
            essay_context=dimension.essay_context,
        )
        for dimension in instrument.dimensions.values()
    ]
    version = {
        "version": instrument.version,
        "sha256": instrument.content_hash,
        "personagym_version": gym.version,
        "personagym_sha256": gym.content_hash,
    }
    known = {kind: list(names) for kind, names in services.submission.catalog.rules.known.items()}
    return TaskList(data=atomic + graded, dimensions=dimensions, instrument=version, versions=known)


@router.get("/models", operation_id="listModels", summary="List connections")
@needs(Scope.READ)
async def models(services: ServicesDep, tenant: TenantDep) -> ConnectionList:
    """The operator's connections, and those made by `POST /v1/connections`, as far as the tenant may use them. A model is named `connection/name`."""
    known = await services.book.of_tenant(tenant)
    data = [
        ConnectionAnswer(
            id=name,
            kind=connection.kind,
            simulated=connection.simulated,
            models=None if models is None else list(models),
            requests_per_minute=connection.limits.requests_per_minute,
            tokens_per_minute=connection.limits.tokens_per_minute,
            max_in_flight=connection.limits.max_in_flight,
        )
        for name, models in known.permitted()
        for connection in (known.by_id[name],)
    ]
    return ConnectionList(data=data)


Filter = Annotated[str | None, Query(max_length=300)]


@router.get(
    "/baselines",
    operation_id="listBaselines",
    responses=answers_with(Baselines),
    summary="Read published results",
)
@needs(Scope.READ)
async def published(
    services: ServicesDep,
    tenant: TenantDep,
    source: Annotated[Literal["atomic", "personagym"] | None, Query(description="Which paper's.")] = None,
    model: Filter = None,
    persona: Filter = None,
    task: Filter = None,
) -> Response:
    """The two papers' published results in the form of a job's: 540 cells of 12 models, PersonaScores of 6.

    `own` lists the baselines that you named by `PUT /v1/baselines/{name}`.
    """
    wanted = BaselineFilter(source, model, persona, task)
    own = await list_baselines(services.engine, tenant) if source is None else []
    if own:
        return Response(await asyncio.to_thread(with_own, wanted, own), media_type="application/json")
    return Response(await asyncio.to_thread(baselines_json, wanted), media_type="application/json")
