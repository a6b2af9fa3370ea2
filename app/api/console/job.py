"""`/jobs/{id}`: one job as it goes on, its results as they come, and what can be done to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from app.api.console.forms import typed_by
from app.api.console.job_form import BUDGET, number_of, tags_of
from app.api.console.live import Parts, live
from app.api.console.summaries import summary, whole
from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.dependencies import (
    TAKES_A_TURN,
    CallerDep,
    JobId,
    Services,
    ServicesDep,
    SpendingJobId,
    TenantDep,
    no_unknown_parameters,
    takes_a_stream,
)
from app.api.http.pages import page, render
from app.api.http.problems import invalid_body
from app.db.labels import annotations
from app.domain.jobs.request import BudgetIn, JobChangeIn
from app.domain.jobs.status import RESUMABLE, JobStatus
from app.domain.keys.api_key import Scope
from app.domain.results.contract import Results
from app.reports.views.cards import worst_sentence
from app.reports.views.in_words import InWords
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.persona_scores import persona_scores
from app.reports.views.summary import Summary
from app.services.errors import NotFoundError
from app.services.jobs.control import (
    cancel_job,
    change_budget,
    change_job,
    check_spender,
    delete_job,
    is_retriable,
    pause_job,
    resume_job,
    retry_job,
)
from app.services.jobs.follow import JobState
from app.services.jobs.view import find_job, view_job
from app.services.results.exports import EXPORT_FORMS

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

SOON_SECONDS = 0.5
"""For so long the page of a running job waits for its results, whose computation takes seconds for a big one; they follow
otherwise."""
WEAKEST_CELLS = 6

Json = dict[str, Any]

DEEDS = {"pause": pause_job, "resume": resume_job, "cancel": cancel_job, "retry": retry_job}
SPENDING_DEEDS = frozenset({"resume", "retry"})
Deed = Literal["pause", "resume", "cancel", "retry"]


@router.get("/jobs/{job_id}", dependencies=[TAKES_A_TURN])
@needs(Scope.READ)
async def job_page(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """A job."""
    view = await view_job(services.engine, tenant, job_id, holds=services.holds)
    job = view.model_dump(mode="json")
    over = JobStatus(job["status"]).is_terminal
    results = await _results(services, tenant, job_id, seconds=None if over else SOON_SECONDS)
    async with services.engine.connect() as connection:
        labels, _, rounds = await annotations.state(connection, tenant, job_id)
    return page(
        "job.html.j2",
        job=job,
        summary=summary(job["spec"]),
        labels=labels,
        rounds=rounds,
        live=None if over else f"/live/jobs/{job_id}",
        **await _state(services, job),
        **await _shown(results),
    )


@router.post("/jobs/{job_id}/budget")
@needs(Scope.SUBMIT)
async def change(
    request: Request, job_id: SpendingJobId, services: ServicesDep, tenant: TenantDep
) -> Response:
    """Changes the limits of a job's budget, and shows it again."""
    typed = await typed_by(request)
    limits = {name: number_of(typed.text(name), kind) for name, kind in BUDGET.items() if typed.text(name)}
    try:
        budget = BudgetIn.model_validate(limits).to_budget()
    except ValidationError as error:
        raise invalid_body(error, {"budget": limits}, "budget") from error
    await change_budget(services.control, tenant, job_id, budget)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/details")
@needs(Scope.SUBMIT)
async def describe(request: Request, job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Changes a job's name, tags and notes, and shows it again."""
    typed = await typed_by(request)
    body = {
        "name": typed.text("name") or None,
        "tags": tags_of(typed.text("tags")),
        "notes": typed.text("notes") or None,
    }
    try:
        change = JobChangeIn.model_validate(body)
    except ValidationError as error:
        raise invalid_body(error, body) from error
    await change_job(services.control, tenant, job_id, change)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/archive")
@needs(Scope.SUBMIT)
async def archive(request: Request, job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Archives a job, or takes it back, and shows it again."""
    archived = (await typed_by(request)).text("archived") == "true"
    await change_job(services.control, tenant, job_id, JobChangeIn(archived=archived))
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/delete")
@needs(Scope.SUBMIT)
async def delete(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes a job, and shows the others."""
    await delete_job(services.control, tenant, job_id)
    return RedirectResponse("/", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/{deed}")
@needs(Scope.SUBMIT)
async def act(
    job_id: JobId, deed: Deed, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> Response:
    """Pauses, resumes, cancels or retries a job, and shows it again."""
    if deed in SPENDING_DEEDS:
        await check_spender(services.control, tenant, job_id, caller.capped_key)
    await DEEDS[deed](services.control, tenant, job_id)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.get("/live/jobs/{job_id}", dependencies=[Depends(takes_a_stream)])
@needs(Scope.READ)
async def live_job(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The parts of a job's page, as they change."""
    first = await services.follower.read(tenant, job_id)
    return live(_parts(services, tenant, job_id, first))


async def _parts(services: Services, tenant: str, job_id: str, first: JobState) -> AsyncIterator[Parts]:
    state = first
    shown: tuple[str | None, bool] | None = None
    try:
        async with contextlib.aclosing(services.follower.states_after(tenant, job_id, first, None)) as states:
            async for changed in states:
                parts: dict[str, str] = {}
                state = changed or state
                job = state.view.model_dump(mode="json")
                if changed is not None:
                    parts["state"] = render("job_state.html.j2", job=job, **await _state(services, job))
                with contextlib.suppress(
                    SQLAlchemyError, OSError
                ):  # away for a moment: the reader need not notice
                    seconds = None if state.is_last else SOON_SECONDS
                    results = await _results(services, tenant, job_id, seconds=seconds)
                    # The heading and links of the same results change when the job ends.
                    if results is not None and (results, state.is_last) != shown:
                        shown = results, state.is_last
                        parts["results"] = render("job_results.html.j2", job=job, **await _shown(results))
                yield parts
    except (NotFoundError, SQLAlchemyError, OSError):
        return  # deleted meanwhile, or the database is away: the page asks again, and is told so


async def _state(services: Services, job: Json) -> Json:
    """What the template of a job's state shows beside the job."""
    failed = any(stage["failed"] for stage in job["progress"].values())
    return {
        "whole": whole(job["progress"]),
        "deeds": await _deeds(services, job, failed=failed),
    }


async def _deeds(services: Services, job: Json, *, failed: bool) -> list[str]:
    """What can be done to a job in its present state."""
    status = JobStatus(job["status"])
    if status.may_call:
        return ["pause", "cancel"]
    lacking = failed if status in RESUMABLE else job["completeness"] != "full"
    retry = ["retry"] if lacking and await is_retriable(services.engine, job["id"], status) else []
    return ["resume", *retry, "cancel"] if status in RESUMABLE else retry


async def _results(services: Services, tenant: str, job_id: str, *, seconds: float | None) -> str | None:
    """A job's results; ``None`` if they take longer."""
    job = await find_job(services.engine, tenant, job_id)
    if seconds is None:
        return await services.results.read(job)
    return await services.results.read_within(job, seconds)


async def _shown(results: str | None) -> Json:
    """What the template of a job's results shows."""
    if results is None:
        return {"results": None, "models": [], "weakest": [], "gym": None, "words": None, "worst": None}
    return await asyncio.to_thread(_summarized, results)


def _summarized(document: str) -> Json:
    results = Results.read(document)
    level_bounds = LevelBounds.of(results.cells)
    found = Summary(results, level_bounds)
    return {
        "exports": EXPORT_FORMS,
        "results": results,
        "models": found.models(),
        "weakest": found.weakest_cells(WEAKEST_CELLS),
        "gym": persona_scores(results),
        "words": InWords.of(results),
        "worst": worst_sentence(results, level_bounds),
        "worst_after": results.worst_sentence and cursors.before_response(results.worst_sentence.response),
    }
