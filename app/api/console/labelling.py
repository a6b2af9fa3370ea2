"""`/label/{round}`: people rate sentences and responses without seeing scores or model names; `/jobs/{id}/labels`: a job's rounds and their progress."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from app.api.console.forms import typed_by
from app.api.console.job_form import number_of
from app.api.http.access import needs
from app.api.http.dependencies import TAKES_A_TURN, JobId, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import invalid_body, wrong_field
from app.api.labels.routes import RoundId, draw_wanted
from app.domain.keys.api_key import Scope
from app.domain.labels.contract import LabellingRoundIn
from app.domain.labels.rounds import MOST_THINGS, Allocation, LabellingKind
from app.reports.views.human_study import study_tables
from app.services.jobs.view import find_job
from app.services.labels.annotation_session import NotAnAnswerError, read_session, record_answer
from app.services.labels.check import ANNOTATOR
from app.services.labels.rounds import dimensions_of_job, newest_rounds, show_round

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])


@router.get("/jobs/{job_id}/labels", dependencies=[TAKES_A_TURN])
@needs(Scope.READ)
async def rounds(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """A job's rounds of labelling, and a form that draws another one."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    dimensions = dimensions_of_job(context)
    kinds = [LabellingKind.SENTENCES, LabellingKind.PAIRS] if dimensions else []
    return page(
        "labels.html.j2",
        job=job,
        dimensions=dimensions,
        kinds=kinds if context.spec.gym is None else [LabellingKind.RESPONSES, *kinds],
        rounds=[
            drawn.model_dump(mode="json") for drawn in await newest_rounds(services.engine, tenant, job_id)
        ],
        most=MOST_THINGS,
        people=await services.results.read_people(job),
        study_tables=study_tables(await services.results.read_study(job)),
        calibrated=await services.results.calibration.models(job),
    )


@router.post("/jobs/{job_id}/labels")
@needs(Scope.SUBMIT)
async def draw(job_id: JobId, request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Draws a round, and shows it among the others."""
    typed = await typed_by(request)
    body = {"job": job_id, "kind": typed.text("kind")}
    if body["kind"] != LabellingKind.RESPONSES:  # they have none, but the form has a choice
        body["dimension"] = typed.text("dimension")
    body["allocation"] = typed.text("allocation") or Allocation.EVEN
    body |= {name: number_of(typed.text(name), int) for name in ("size", "seed")}
    if answers_each := typed.text("answers_each"):
        body["answers_each"] = number_of(answers_each, int)
    try:
        wanted = LabellingRoundIn.model_validate(body)
    except ValidationError as error:
        raise invalid_body(error, body) from error
    await draw_wanted(services, tenant, wanted)
    return RedirectResponse(f"/jobs/{job_id}/labels", HTTPStatus.SEE_OTHER)


@router.get("/label/{round_id}")
@needs(Scope.READ)
async def label(
    round_id: RoundId,
    services: ServicesDep,
    tenant: TenantDep,
    annotator: Annotated[str | None, Query(max_length=100)] = None,
    at: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> Response:
    """Ask for the annotator's name, then show their first unanswered item, or the one at a position."""
    name = "" if annotator is None else annotator.strip()
    if not name or ANNOTATOR.fullmatch(name) is None:
        shown = await show_round(services.engine, tenant, round_id)
        return page("label_name.html.j2", round=shown, name=name)
    state = await read_session(services.engine, services.contexts, tenant, round_id, name, at)
    return page("label.html.j2", state=state, name=name, round_id=round_id, path=_path(round_id, name))


@router.post("/label/{round_id}")
@needs(Scope.SUBMIT)
async def answer(round_id: RoundId, request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Record an answer and go on to the next unanswered item."""
    typed = await typed_by(request)
    name, at = typed.text("annotator"), typed.text("at")
    if ANNOTATOR.fullmatch(name) is None:
        raise wrong_field("/annotator", "is not a valid name")
    if not (at.isascii() and at.isdigit() and len(at) < 10):  # noqa: PLR2004 - no number that is too long to be read
        raise wrong_field("/at", "is not a valid position")
    try:
        await record_answer(
            services.engine, services.contexts, tenant, round_id, name, int(at), typed.text("answer")
        )
    except NotAnAnswerError as error:
        raise wrong_field("/answer", str(error)) from error
    return RedirectResponse(_path(round_id, name), HTTPStatus.SEE_OTHER)


def _path(round_id: str, name: str) -> str:
    return f"/label/{round_id}?{urlencode({'annotator': name})}"
