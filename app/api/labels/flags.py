"""`/v1/flags`: what people say of sentences that they came across."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import ServicesDep, TenantDep, job_id_of
from app.api.http.openapi import NOT_FOUND
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.domain.labels.flags import Flag, FlagIn, FlagList
from app.services.identifiers import id_form
from app.services.labels.flags import keep_flag, list_flags, remove_flag

router = resource("/flags", "annotations")

FlagId = Annotated[str, Path(description="A flag's ID."), AfterValidator(id_check("flag", id_form("flag")))]


@router.post("", operation_id="setFlag", responses=NOT_FOUND, summary="Flag a sentence or response")
@needs(Scope.SUBMIT)
async def create(body: FlagIn, services: ServicesDep, tenant: TenantDep) -> Flag:
    """Flags a sentence or a whole response, for example because the judge is wrong, with the right score or a note.

    A new flag by the same annotator replaces the earlier one on the same sentence. Flags count in no metric, agreement or
    calibration: whoever flags has seen the judges' scores.
    """
    return await keep_flag(services.engine, services.contexts, tenant, body)


@router.get("", operation_id="listFlags", responses=NOT_FOUND, summary="List flags")
@needs(Scope.READ)
async def list_(
    services: ServicesDep,
    tenant: TenantDep,
    job: Annotated[str | None, Query(max_length=100, description="Only on this job's responses.")] = None,
    limit: PageLimit = 50,
    after: After = None,
) -> FlagList:
    """Flags, newest first."""
    job_id = None if job is None else job_id_of(job)
    begin = cursors.beginning(after)
    found = await list_flags(services.engine, tenant, job_id, after=begin, limit=limit + 1)
    return cursors.newest_first(FlagList, found, limit)


@router.delete("/{flag_id}", operation_id="removeFlag", responses=NOT_FOUND, summary="Remove a flag")
@needs(Scope.SUBMIT)
async def remove(flag_id: FlagId, services: ServicesDep, tenant: TenantDep) -> Flag:
    """Removes a flag and returns it."""
    return await remove_flag(services.engine, tenant, flag_id)
