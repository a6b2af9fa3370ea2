"""Exemplars: those that a question set keeps, and those by which a job grades."""

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import JobId, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND
from app.api.http.resources import resource
from app.api.sets.question_sets import SetId
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import JobExemplarList, SetExemplarList
from app.services.jobs.view import find_job
from app.services.sets.exemplars import exemplars_of_job, exemplars_of_set

router = resource("")


@router.get(
    "/question-sets/{set_id}/exemplars",
    operation_id="listQuestionSetExemplars",
    tags=["question sets"],
    responses=NOT_FOUND,
    summary="List a question set's exemplars",
)
@needs(Scope.READ)
async def of_set(
    set_id: SetId, services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
) -> SetExemplarList:
    """Those that came with the set, and those that reasoners wrote for jobs on it; a job that would ask for the same reuses them."""
    begin = None if after is None else cursors.key_and_id(after, str)
    found = await exemplars_of_set(
        services.engine,
        tenant,
        set_id,
        limit=limit + 1,
        after=None if begin is None else (str(begin[0]), begin[1]),
    )
    return cursors.page(
        SetExemplarList, found, limit, lambda entry: entry[1], lambda entry: cursors.of_key(*entry[0])
    )


@router.get(
    "/jobs/{job_id}/exemplars",
    operation_id="listJobExemplars",
    tags=["jobs"],
    responses=NOT_FOUND,
    summary="List a job's exemplars",
)
@needs(Scope.READ)
async def of_job(
    job_id: JobId, services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
) -> JobExemplarList:
    """The answers for each score by which PersonaGym's judges grade, question by question, as far as they are written."""
    offset = 0 if after is None else cursors.number(after)
    await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    found = await exemplars_of_job(
        services.engine, tenant, job_id, context.spec, limit=limit + 1, offset=offset
    )
    return cursors.page(JobExemplarList, found, limit, None, lambda _: cursors.encoded([offset + limit]))
