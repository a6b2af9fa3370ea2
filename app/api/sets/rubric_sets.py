"""`/v1/rubric-sets`: immutable sets of rubrics and prompts, named by their content."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.openapi import NOT_FOUND, PROBLEMS
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRoute
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import RubricSet, RubricSetList, RubricSetSummary
from app.services.sets.rubric_sets import find_rubric_set, keep_rubrics
from app.services.sets.sets import list_sets

router = APIRouter(
    prefix="/v1/rubric-sets",
    tags=["rubric sets"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

SetId = Annotated[
    str, Path(description="A set's id."), AfterValidator(id_check("rubric set", r"rset_[0-9a-f]{32}"))
]


@router.post("", operation_id="createRubricSet", status_code=201, summary="Create a rubric set")
@needs(Scope.SUBMIT)
async def create(
    body: RubricSetIn, services: ServicesDep, tenant: TenantDep, response: Response
) -> RubricSet:
    """Stores rubrics and prompts for tasks, which jobs name in `rubrics`. The same words always give the same set."""
    found = await keep_rubrics(services.engine, services.submission.catalog, tenant, body)
    response.headers["Location"] = f"/v1/rubric-sets/{found.id}"
    return found


@router.get("", operation_id="listRubricSets", summary="List rubric sets")
@needs(Scope.READ)
async def list_(
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> RubricSetList:
    """Sets, newest first, without their words."""
    begin = cursors.beginning(after)
    found = await list_sets(services.engine, "rubric_sets", tenant, limit=limit + 1, after=begin)
    return cursors.newest_first(RubricSetList, found, limit, RubricSetSummary.of_row)


@router.get("/{set_id}", operation_id="getRubricSet", responses=NOT_FOUND, summary="Get a rubric set")
@needs(Scope.READ)
async def get(set_id: SetId, services: ServicesDep, tenant: TenantDep) -> RubricSet:
    """A set with its words."""
    return await find_rubric_set(services.engine, tenant, set_id)
