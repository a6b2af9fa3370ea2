"""`/bridge`: from an old judge to a new one of the same texts."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from app.api.console.summaries import job_words
from app.api.http.access import needs
from app.api.http.dependencies import (
    TAKES_A_TURN,
    ServicesDep,
    TenantDep,
    job_id_of,
    no_unknown_parameters,
)
from app.api.http.pages import page
from app.db.jobs.jobs import JobRow
from app.db.jobs.listing import list_jobs
from app.domain.errors import InvalidJobError
from app.domain.jobs.listing import JobFilter
from app.domain.keys.api_key import Scope
from app.domain.results.bridge import Bridge
from app.domain.results.request import BridgeIn, JudgeIn
from app.reports.views.bridge_picture import bridge_picture
from app.services.errors import NotFoundError, WrongStateError
from app.services.results.bridge import bridge

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

RECENT_JOBS = 50
"""Jobs whose judges can be chosen; others by their address."""
ANCHORS = 200
"""Texts that the form for a new judge suggests."""
MARGINS = (0.02, 0.05, 0.1)

Side = Annotated[str, Query(max_length=400)]


@router.get("/bridge", dependencies=[TAKES_A_TURN])
@needs(Scope.READ)
async def bridge_page(
    services: ServicesDep,
    tenant: TenantDep,
    old: Side = "",
    new: Side = "",
    within: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.05,
) -> Response:
    """A bridge, once both judges are chosen, and the forms to choose them or to draw anchors for a new one."""
    found: Bridge | None = None
    errors: dict[str, str] = {}
    status = HTTPStatus.OK
    try:
        if old and new:
            wanted = BridgeIn.model_construct(old=_judge(old), new=_judge(new), within=within)
            found = await bridge(services.engine, services.contexts, tenant, wanted)
    except InvalidJobError as error:
        errors = {each.pointer.split("/")[1]: each.message for each in error.errors}
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    except NotFoundError as error:
        errors, status = {"": str(error)}, HTTPStatus.NOT_FOUND
    except WrongStateError as error:
        errors, status = {"": str(error)}, HTTPStatus.CONFLICT
    async with services.engine.connect() as connection:
        recent = [each.job for each in await list_jobs(connection, tenant, JobFilter(), limit=RECENT_JOBS)]
    return page(
        "bridge.html.j2",
        status,
        here="/compare",
        options={
            job_words(job): list(_judges(job))
            for job in recent
            if job.status.is_terminal and "generate" not in job.request
        },
        chosen={"old": old, "new": new},
        within=within,
        margins=sorted({*MARGINS, within}),
        anchors=ANCHORS,
        drawn_from=_judge(old).job if old and not errors else "",
        errors=errors,
        found=found,
        picture=None if found is None else bridge_picture(found),
    )


def _judge(text: str) -> JudgeIn:
    """A choice of the page, or what else is in its address: whatever names nothing is told by who looks it up."""
    job, _, judge = text.partition(":")
    return JudgeIn.model_construct(job=job_id_of(job), judge=judge or None)


def _judges(job: JobRow) -> Iterator[tuple[str, str]]:
    judges = job.request.get("judges") or []
    if len(judges) <= 1:
        yield job.id, _name(judges[0]) if judges else "the usual judge"
        return
    for judge in judges:
        yield f"{job.id}:{_name(judge)}", _name(judge)


def _name(judge: str | dict[str, str]) -> str:
    """How results name a judge of a job's body."""
    return judge if isinstance(judge, str) else judge.get("label") or judge.get("model") or judge["imported"]
