"""`/jobs/{id}/responses`: what the models wrote, every sentence marked by what judges said of it."""

import asyncio
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed, number_of
from app.api.http.access import needs
from app.api.http.dependencies import (
    TAKES_A_TURN,
    JobId,
    ResponsePlace,
    Services,
    ServicesDep,
    TenantDep,
    job_id_of,
    no_unknown_parameters,
)
from app.api.http.pages import page
from app.api.http.problems import validated
from app.api.jobs.response_lists import SearchedText, read_list, source_of
from app.api.labels.flags import FlagId
from app.db.jobs.jobs import JobRow
from app.db.results.response_pages import Position
from app.db.results.sorted_responses import Sort
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.contract import DimensionInWords
from app.domain.jobs.plan import GymCell
from app.domain.judging.judged_response import JudgedResponse
from app.domain.judging.text_notes import TextNote
from app.domain.keys.api_key import Scope
from app.domain.labels.annotation import Answer
from app.domain.labels.flags import FlagIn
from app.domain.personagym.task import GRADE_SCALE
from app.reports.views.cards import DOUBTS, make_card
from app.reports.views.in_words import InWords
from app.reports.views.level_bounds import LevelBounds
from app.services.identifiers import response_id
from app.services.job_context import JobContext
from app.services.jobs.view import find_job, show_job
from app.services.labels.annotations import people_scores_of
from app.services.labels.check import dimensions_of
from app.services.labels.flags import flags_of, keep_flag, remove_flag
from app.services.results.judge_calls import read_judge_calls
from app.services.results.responses import APART, LOOKED_AT, TEXTS_LOOKED_AT, ResponseFilter
from app.services.results.side_by_side import Source, neighbours, read_side_by_side

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

RESPONSES_A_PAGE = 20
VERDICTS_A_PAGE = 4_000
"""A page with long responses ends before it has more; a card itself shows no more than a bounded part of one."""

PAGES_BACK = 20
"""Pages before this one that its address remembers, for the link to the one before."""

SORTS = {
    "": "as asked",
    "score": "least in character first",
    "-score": "most in character first",
    "-gap": "judges farthest apart first",
    "length": "shortest first",
    "-length": "longest first",
}

NOTES: dict[TextNote, str] = {
    "unknown_tags": "unknown tags",
    "unknown_finish_word": "unknown reason to stop",
    "cut_off": "cut off",
    "repeated_sentences": "repeated sentences",
    "role_breaks": "breaks of the role",
    "refusal_check": "refusal checked by a judge",
}

Choice = Annotated[str, Query(max_length=300)]
Cursor = Annotated[str, Query(max_length=200)]


@router.get("/jobs/{job_id}/responses", dependencies=[TAKES_A_TURN])
@needs(Scope.READ)
async def browse(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    model: Choice = "",
    persona: Choice = "",
    task: Choice = "",
    out_of_character: bool = False,
    judges_disagree: bool = False,
    suspicious: bool = False,
    people_against_judges: bool = False,
    flagged: bool = False,
    note: TextNote | Literal[""] = "",
    min_gap: Annotated[float, Query(gt=0, le=10_000)] = APART,
    q: SearchedText = None,
    sort: Sort | Literal[""] = "",
    after: Annotated[str | None, Query(max_length=200)] = None,
    back: Annotated[list[Cursor], Query(max_length=PAGES_BACK)] = [],  # noqa: B006 - never changed
) -> Response:
    """A page of responses; what is chosen of them is in the address. An empty choice is none."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    wanted = ResponseFilter(
        model or None,
        persona or None,
        task or None,
        out_of_character,
        judges_disagree,
        suspicious,
        min_gap if people_against_judges else None,
        text=q or None,
        flagged=flagged,
        noted=note or None,
    )
    found, following = await read_list(
        services,
        job,
        context,
        wanted,
        sort or None,
        after=after,
        limit=RESPONSES_A_PAGE,
        most_verdicts=VERDICTS_A_PAGE,
    )
    query = {"q": q, "model": model, "persona": persona, "task": task, "note": note, "sort": sort}
    marks = ("out_of_character", "judges_disagree", "suspicious", "flagged")
    query |= {name: "true" for name in marks if getattr(wanted, name)}
    if people_against_judges:
        query |= {"people_against_judges": "true", "min_gap": f"{min_gap:g}"}
    ids = [each.id for each in found]
    people = await people_scores_of(services.engine, tenant, job_id, ids)
    flags = await flags_of(services.engine, tenant, job_id, ids)
    # Sentences by the thousand take CPU; other requests go on meanwhile.
    return await asyncio.to_thread(
        _page,
        found,
        context,
        job=show_job(job).model_dump(mode="json"),
        choices=_choices(context),
        by_sentence=any(cell.dimensions for cell in context.cells),
        judges=len(context.spec.judges),
        people=people,
        flags=flags,
        wanted=wanted,
        query={name: value for name, value in query.items() if value},
        following=following and {"after": following, "back": [*back, after or ""][-PAGES_BACK:]},
        former={"after": back[-1], "back": back[:-1]} if back else None,
        later=after is not None,
        sorts=SORTS,
        notes=NOTES,
        sort=sort,
        looked_at=LOOKED_AT if wanted.by_judgement else TEXTS_LOOKED_AT,
    )


@router.get("/jobs/{job_id}/responses/{response_id}/judging")
@needs(Scope.READ)
async def judging(
    named: ResponsePlace,
    services: ServicesDep,
    unit: Annotated[int | None, Query(ge=0, le=32_767)] = None,
) -> Response:
    """What judges were asked about a sentence, or without one about the whole response, and what they replied."""
    return await _asked(services, named, unit, Typed({}))


@router.post("/jobs/{job_id}/responses/{response_id}/flag")
@needs(Scope.SUBMIT)
async def flag(
    named: ResponsePlace, response_id: str, request: Request, services: ServicesDep, tenant: TenantDep
) -> Response:
    """Flags the sentence or response, and shows the flag; or what is wrong with what was typed."""
    typed = await typed_by(request)
    unit = number_of(typed.text("unit"), int) if typed.text("unit") else None
    dimension, _, score = typed.text("score").rpartition(" ")
    body = {
        "annotator": typed.text("annotator"),
        "response": response_id,
        "unit": unit,
        "dimension": dimension or None,
        "score": number_of(score, int) if score and score != Answer.NOT_APPLICABLE else score or None,
        "note": typed.text("note") or None,
    }
    try:
        await keep_flag(services.engine, services.contexts, tenant, validated(FlagIn, body))
    except InvalidJobError as error:
        wrong = error.errors
    else:
        at = "" if unit is None else f"?unit={unit}"
        return RedirectResponse(f"{request.url.path.removesuffix('/flag')}/judging{at}", HTTPStatus.SEE_OTHER)
    shown = unit if isinstance(unit, int) and unit >= 0 else None
    return await _asked(services, named, shown, typed, HTTPStatus.UNPROCESSABLE_ENTITY, wrong)


@router.post("/jobs/{job_id}/responses/{response_id}/flags/{flag_id}/remove")
@needs(Scope.SUBMIT)
async def remove(
    named: ResponsePlace, response_id: str, flag_id: FlagId, services: ServicesDep, tenant: TenantDep
) -> Response:
    """Removes a flag, and shows the sentence that it was on."""
    removed = await remove_flag(services.engine, tenant, flag_id)
    at = "" if removed.unit is None else f"?unit={removed.unit}"
    path = f"/jobs/{named[0].id}/responses/{response_id}/judging{at}"
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)


async def _asked(
    services: Services,
    named: tuple[JobRow, JobContext, Position],
    unit: int | None,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    errors: Sequence[FieldError] = (),
) -> Response:
    job, context, place = named
    found = await read_judge_calls(services.engine, job, context, place, unit)
    of_response = (await flags_of(services.engine, job.tenant, job.id, [found.response]))[0]
    cell = context.cell(place[0])
    scales = [(each.id, each.scale) for each in cell.dimensions if each.id in dimensions_of(cell, place[2])]
    return page(
        "judging.html.j2",
        status,
        job=show_job(job).model_dump(mode="json"),
        found=found,
        words=InWords((), map(DimensionInWords.of, context.dimensions)),
        doubts=DOUBTS,
        flags=[flag for flag in of_response if flag.unit == unit],
        scales=[("", GRADE_SCALE)] if isinstance(cell, GymCell) and unit is None else scales,
        control=cell.control,
        typed=typed,
        errors=errors,
    )


@router.get("/jobs/{job_id}/responses/{response_id}/side-by-side")
@needs(Scope.READ)
async def side_by_side(
    named: ResponsePlace,
    services: ServicesDep,
    tenant: TenantDep,
    with_: Annotated[str, Query(alias="with", max_length=100)] = "",
) -> Response:
    """What several models answered to the same, beside each other."""
    job, context, place = named
    other = await source_of(services, tenant, job_id_of(with_)) if with_ else None
    found, more = await read_side_by_side(services.engine, Source(job, context), place, other)
    ways = [
        to and response_id(job.id, *to) for to in neighbours(context, place)
    ]  # there may be no response yet
    return await asyncio.to_thread(
        _page,
        found,
        context,
        template="side_by_side.html.j2",
        job=show_job(job).model_dump(mode="json"),
        other=None if other is None else show_job(other.job).model_dump(mode="json"),
        former=ways[0],
        following=ways[1],
        more=more,
    )


def _page(
    found: Iterable[JudgedResponse], context: JobContext, template: str = "responses.html.j2", **shown: Any
) -> Response:
    level_bounds = _level_bounds(context)
    words = InWords((), map(DimensionInWords.of, context.dimensions))
    cards = [make_card(response, level_bounds, words) for response in found]
    return page(template, cards=cards, **shown)


def _choices(context: JobContext) -> dict[str, list[str]]:
    """What can be chosen, in the job's order."""
    return {
        "model": [model.label for model in context.spec.models],
        "persona": list(dict.fromkeys(cell.persona.id for cell in context.cells)),
        "task": list(dict.fromkeys(cell.task.id for cell in context.cells)),
    }


def _level_bounds(context: JobContext) -> LevelBounds:
    """Where each persona's scores should lie, by the job's specification: its results may not be there yet."""
    return LevelBounds(
        {
            (dimension.id, trait.level): dimension.scale
            for cell in context.cells
            for dimension, trait in zip(cell.dimensions, cell.persona.traits, strict=False)
        }
    )
