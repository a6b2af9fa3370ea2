"""`/v1/baselines/{name}`: models of finished jobs under names of one's own, for comparisons and gates."""

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep
from app.api.http.openapi import CONFLICT, NOT_FOUND
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.domain.results.named_baselines import (
    NAME_FORM,
    BaselineName,
    BaselineRenameIn,
    NamedBaseline,
    NamedBaselineIn,
)
from app.services.results.named_baselines import (
    forget_baseline,
    name_baseline,
    read_baseline,
    rename_baseline,
)

router = resource("/baselines/{name}", "catalog")

NewName = Annotated[BaselineName, Path(description="The name, of your own choice.")]
KnownName = Annotated[
    str, Path(description="A baseline's name."), AfterValidator(id_check("baseline", NAME_FORM))
]


@router.put("", operation_id="nameBaseline", responses=NOT_FOUND | CONFLICT, summary="Name a baseline")
@needs(Scope.SUBMIT)
async def name(
    name: NewName, body: NamedBaselineIn, services: ServicesDep, tenant: TenantDep
) -> NamedBaseline:
    """Names a model of a finished job, for `baseline` in comparisons and `baseline:NAME` in thresholds.

    What had the name before loses it. The job is kept, beyond its retention time too, as long as it is a baseline.
    """
    return await name_baseline(services.engine, services.contexts, tenant, name, body)


@router.get("", operation_id="getBaseline", responses=NOT_FOUND, summary="Read a baseline of your own")
@needs(Scope.READ)
async def read(name: KnownName, services: ServicesDep, tenant: TenantDep) -> NamedBaseline:
    """Which model of which job has the name; `GET /v1/baselines` lists all in `own`."""
    return await read_baseline(services.engine, tenant, name)


@router.patch("", operation_id="renameBaseline", responses=NOT_FOUND, summary="Rename a baseline")
@needs(Scope.SUBMIT)
async def rename(
    name: KnownName, body: BaselineRenameIn, services: ServicesDep, tenant: TenantDep
) -> NamedBaseline:
    """Thresholds of jobs that name it by its former name no longer find it."""
    return await rename_baseline(services.engine, tenant, name, body.name)


@router.delete(
    "", operation_id="deleteBaseline", status_code=204, responses=NOT_FOUND, summary="Delete a baseline"
)
@needs(Scope.SUBMIT)
async def forget(name: KnownName, services: ServicesDep, tenant: TenantDep) -> None:
    """Takes the name away; the job stays."""
    await forget_baseline(services.engine, tenant, name)
