"""`/v1/rubric-sets`: immutable sets of rubrics and prompts, named by their content."""

from fastapi import Response

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep
from app.api.http.resources import resource
from app.api.sets.reading import add_reading
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import RubricSet
from app.domain.sets.kinds import RUBRIC_SET
from app.services.sets.rubric_sets import keep_rubrics

router = resource(f"/{RUBRIC_SET.folder}", f"{RUBRIC_SET.noun}s")


@router.post("", operation_id="createRubricSet", status_code=201, summary="Create a rubric set")
@needs(Scope.SUBMIT)
async def create(
    body: RubricSetIn, services: ServicesDep, tenant: TenantDep, response: Response
) -> RubricSet:
    """Stores rubrics and prompts for tasks, which jobs name in `rubrics`. The same words always give the same set."""
    found = await keep_rubrics(services.engine, services.submission.catalog, tenant, body)
    response.headers["Location"] = f"{RUBRIC_SET.path}/{found.id}"
    return found


add_reading(
    router, RUBRIC_SET, listed="Sets, newest first, without their words.", shown="A set with its words."
)
