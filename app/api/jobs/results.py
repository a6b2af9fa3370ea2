"""`/v1/jobs/{id}/results` and what else is computed of a job."""

from typing import Annotated

from fastapi import Query, Response

from app.api.http.access import needs
from app.api.http.dependencies import TAKES_A_TURN, JobId, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND, answers_with
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.domain.personagym.environments import Environments
from app.domain.results.by_instruction import ByInstruction
from app.domain.results.contract import Results, RunDistances
from app.domain.results.model_groups import ModelGroups
from app.services.jobs.view import find_job
from app.services.results.by_instruction import read_by_instruction
from app.services.results.environments import read_environments
from app.services.results.model_groups import groups_of
from app.services.results.run_distances import CellChoice, read_run_distances

router = resource("/jobs", "jobs")


@router.get(
    "/{job_id}/results",
    operation_id="getResults",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(Results) | NOT_FOUND,
    summary="Get a job's results",
)
@needs(Scope.READ)
async def results(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Every metric by cell and in total, each with its n and what was left out.

    Also available while the job runs; these results are at most 30 seconds old (`computed_at`).
    """
    job = await find_job(services.engine, tenant, job_id)
    return Response(await services.results.read(job), media_type="application/json")


@router.get(
    "/{job_id}/distances",
    operation_id="getDistances",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(RunDistances) | NOT_FOUND,
    summary="Get a cell's distances between runs",
)
@needs(Scope.READ)
async def distances(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    persona: Annotated[str, Query(max_length=100)],
    task: Annotated[str, Query(max_length=100)],
    model: Annotated[
        str | None, Query(max_length=300, description="May be left out if the job has only one.")
    ] = None,
    dimension: Annotated[
        str | None, Query(max_length=100, description="May be left out if the cell has only one.")
    ] = None,
) -> Response:
    """The distances between runs from which a cell's RC_atom is computed. Also available while the job runs."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    wanted = CellChoice(model, persona, task, dimension)
    found = await read_run_distances(services.engine, job, context, wanted)
    return Response(found.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/instructions",
    operation_id="getResultsByInstruction",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(ByInstruction) | NOT_FOUND,
    summary="Read the results by persona instruction",
)
@needs(Scope.READ)
async def instructions(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The papers' metrics for each wording of the persona instruction; works while the job runs.

    Empty for a job whose texts have no known instruction, as with PersonaGym tasks alone.
    """
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    found = await read_by_instruction(services.engine, job, context)
    return Response(found.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/{job_id}/groups",
    operation_id="getModelGroups",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(ModelGroups) | NOT_FOUND,
    summary="Read the results by groups of models",
)
@needs(Scope.READ)
async def groups(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The models, alone and by the `attributes` that the job gives them, with ACC_atom of less and of more desired personas."""
    job = await find_job(services.engine, tenant, job_id)
    found = groups_of(job, await services.results.read_model(job))
    return Response(found.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/{job_id}/environments",
    operation_id="getEnvironments",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(Environments) | NOT_FOUND,
    summary="Read the personas' environments",
)
@needs(Scope.READ)
async def environments(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The environments in which PersonaGym's questions are set, by persona and counted; works while the job runs."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    found = await read_environments(services.engine, job, context)
    return Response(found.model_dump_json(), media_type="application/json")
