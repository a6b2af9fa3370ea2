"""`/jobs/{id}`: one job as it goes on, its results as they come, and what can be done to it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.exc import SQLAlchemyError

from app.api.console.live import Parts, live
from app.api.console.summaries import summary, whole
from app.api.dependencies import JobId, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.pages import page, render
from app.domain.status import JobStatus
from app.reports.persona_scores import persona_scores
from app.reports.summary import Summary
from app.reports.targets import Targets
from app.services.control_job import cancel_job, pause_job, resume_job, retry_job
from app.services.errors import NotFoundError
from app.services.follow_job import JobState, read_state, states_after
from app.services.job_view import find_job, view_job

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

RESULTS_SECONDS = 5.0
"""How soon newer results show while a job runs; computing them takes seconds for a big one."""
SOON_SECONDS = 0.5
"""For so long the page of a running job waits for its results, which follow otherwise."""
WEAKEST_CELLS = 6

Json = dict[str, Any]

DEEDS = {"pause": pause_job, "resume": resume_job, "cancel": cancel_job, "retry": retry_job}
Deed = Literal["pause", "resume", "cancel", "retry"]


@router.get("/jobs/{job_id}")
async def job_page(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """A job."""
    job = await view_job(services.engine, tenant, job_id)
    over = JobStatus(job["status"]).is_terminal
    reading = asyncio.ensure_future(_results(services, tenant, job_id))
    done, _ = await asyncio.wait({reading}, timeout=None if over else SOON_SECONDS)
    if not done:
        reading.cancel()
    return page(
        "job.html.j2",
        job=job,
        summary=summary(job["spec"]),
        live=None if over else f"/live/jobs/{job_id}",
        **_state(job),
        **(reading.result() if done else NO_RESULTS),
    )


@router.post("/jobs/{job_id}/{deed}")
async def act(job_id: JobId, deed: Deed, services: ServicesDep, tenant: TenantDep) -> Response:
    """Pauses, resumes, cancels or retries a job, and shows it again."""
    await DEEDS[deed](services.control, tenant, job_id)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.get("/live/jobs/{job_id}")
async def live_job(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The parts of a job's page, as they change."""
    first = await read_state(services.engine, tenant, job_id)
    return live(_parts(services, tenant, job_id, first))


async def _parts(services: Services, tenant: str, job_id: str, first: JobState) -> AsyncIterator[Parts]:
    clock = asyncio.get_running_loop().time
    reading: asyncio.Task[Json] | None = None
    read_at = -RESULTS_SECONDS
    try:
        async for state in states_after(services.engine, tenant, job_id, first, None):
            parts: dict[str, str] = {}
            if state is not None:
                job = json.loads(state.body)
                parts["state"] = render("job_state.html.j2", job=job, **_state(job))
            if reading is not None and reading.done():
                parts |= _results_part(job, reading)
                reading, read_at = None, clock()
            if state is not None and state.is_last:
                reading = reading or asyncio.create_task(_results(services, tenant, job_id))
                await asyncio.wait({reading})
                parts |= _results_part(job, reading)
            elif reading is None and clock() - read_at >= RESULTS_SECONDS:
                reading = asyncio.create_task(_results(services, tenant, job_id))
            yield parts
    except NotFoundError:
        return  # deleted meanwhile: who loads the page again is told so
    finally:
        if reading is not None:
            reading.cancel()


def _results_part(job: Json, reading: asyncio.Task[Json]) -> Parts:
    """The results, unless the database was away just then."""
    with contextlib.suppress(SQLAlchemyError, OSError):
        return {"results": render("job_results.html.j2", job=job, **reading.result())}
    return {}


def _state(job: Json) -> Json:
    """What the template of a job's state shows beside the job."""
    failed = any(stage["failed"] for stage in job["progress"].values())
    return {"whole": whole(job["progress"]), "deeds": _deeds(job, failed=failed)}


def _deeds(job: Json, *, failed: bool) -> list[str]:
    """What can be done to a job in its present state."""
    status = JobStatus(job["status"])
    if status.may_call:
        return ["pause", "cancel"]
    if status is JobStatus.PAUSED:
        return ["resume", *(["retry"] if failed else []), "cancel"]
    incomplete = job["completeness"] != "full"
    return ["retry"] if incomplete and status in {JobStatus.COMPLETED, JobStatus.FAILED} else []


NO_RESULTS: Json = {"results": None, "models": [], "weakest": [], "gym": None}


async def _results(services: Services, tenant: str, job_id: str) -> Json:
    """What the template of a job's results shows."""
    job = await find_job(services.engine, tenant, job_id)
    return await asyncio.to_thread(_summarized, await services.results.read(job))


def _summarized(document: str) -> Json:
    results = json.loads(document)
    found = Summary(results, Targets(results["cells"]))
    return {
        "results": results,
        "models": found.models(),
        "weakest": found.weakest_cells(WEAKEST_CELLS),
        "gym": persona_scores(results),
    }
