"""`/jobs/{id}/baselines`: the names under which a job's models are baselines, and the form that gives one."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import AfterValidator

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed
from app.api.http.access import needs
from app.api.http.dependencies import JobId, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.path_ids import id_check
from app.api.http.problems import validated
from app.domain.errors import FieldError, InvalidJobError
from app.domain.keys.api_key import Scope
from app.domain.results.named_baselines import NAME_FORM, BaselineRenameIn, NamedBaselineIn
from app.services.jobs.view import find_job
from app.services.results.named_baselines import forget_baseline, list_baselines, name_baseline

router = APIRouter(
    prefix="/jobs/{job_id}/baselines",
    include_in_schema=False,
    dependencies=[Depends(no_unknown_parameters)],
)

KnownName = Annotated[str, Path(), AfterValidator(id_check("baseline", NAME_FORM))]


@router.get("")
@needs(Scope.READ)
async def baselines(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """A job's baselines."""
    return await _listed(services, tenant, job_id, Typed({}))


@router.post("")
@needs(Scope.SUBMIT)
async def name(request: Request, job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Names one of the job's models, or says what is wrong with what was typed."""
    typed = await typed_by(request)
    body: dict[str, Any] = {"job": job_id, "model": typed.text("model") or None}
    try:
        chosen = validated(BaselineRenameIn, {"name": typed.text("name")}).name
        wanted = validated(NamedBaselineIn, body)
        await name_baseline(services.engine, services.contexts, tenant, chosen, wanted)
    except InvalidJobError as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return await _listed(services, tenant, job_id, typed, status, errors=error.errors)
    return RedirectResponse(f"/jobs/{job_id}/baselines", HTTPStatus.SEE_OTHER)


@router.post("/{name}/delete")
@needs(Scope.SUBMIT)
async def forget(job_id: JobId, name: KnownName, services: ServicesDep, tenant: TenantDep) -> Response:
    """Takes a name away, and shows the others."""
    await forget_baseline(services.engine, tenant, name)
    return RedirectResponse(f"/jobs/{job_id}/baselines", HTTPStatus.SEE_OTHER)


async def _listed(
    services: Services,
    tenant: str,
    job_id: str,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    errors: Sequence[FieldError] = (),
) -> Response:
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    return page(
        "baselines.html.j2",
        status,
        job=job,
        named=[each for each in await list_baselines(services.engine, tenant) if each.job == job_id],
        models=[model.label for model in context.spec.models],
        typed=typed,
        errors=errors,
    )
