"""`/v1/jobs/{id}/share-links`: links by which one job is read without a key, until they end."""

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator

from app.api.http.access import needs
from app.api.http.dependencies import JobId, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.domain.jobs.share_links import NewShareLink, ShareLink, ShareLinkIn, ShareLinkList
from app.domain.keys.api_key import Scope
from app.services.identifiers import id_form
from app.services.jobs.share_links import create_link, list_links, revoke_link

router = resource("/jobs/{job_id}/share-links", "jobs")

ShareLinkId = Annotated[
    str, Path(description="A share link's ID."), AfterValidator(id_check("share link", id_form("shr")))
]


@router.post(
    "", operation_id="createShareLink", status_code=201, responses=NOT_FOUND, summary="Create a share link"
)
@needs(Scope.SUBMIT)
async def create(job_id: JobId, body: ShareLinkIn, services: ServicesDep, tenant: TenantDep) -> NewShareLink:
    """Whoever has the link reads the job's report and results without a key until it ends, and nothing else.

    Only this answer has the link: what is kept can check it, and no more.
    """
    return await create_link(services.engine, tenant, job_id, body)


@router.get("", operation_id="listShareLinks", responses=NOT_FOUND, summary="List share links")
@needs(Scope.READ)
async def list_(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> ShareLinkList:
    """A job's share links, newest first, at most 200; ended ones too."""
    return ShareLinkList(data=await list_links(services.engine, tenant, job_id))


@router.delete(
    "/{link_id}", operation_id="revokeShareLink", responses=NOT_FOUND, summary="Revoke a share link"
)
@needs(Scope.SUBMIT)
async def revoke(job_id: JobId, link_id: ShareLinkId, services: ServicesDep, tenant: TenantDep) -> ShareLink:
    """Ends a link for good, at once."""
    return await revoke_link(services.engine, tenant, job_id, link_id)
