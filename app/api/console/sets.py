"""`/persona-sets`, `/question-sets` and `/rubric-sets`: what is in each kept set, which jobs use it, and how to keep another one."""

import csv
import io
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed, pasted_personas
from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After
from app.api.http.dependencies import ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import ProblemError, validated
from app.api.http.strict_json import loads
from app.api.sets import persona_sets, question_sets, rubric_sets
from app.db.sets.sets import SetSummary
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.contract import DimensionInWords
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import PersonaSetIn, QuestionSetIn
from app.reports.views.in_words import InWords
from app.services.long_texts import on_a_thread
from app.services.sets.persona_sets import find_persona_set, keep_personas
from app.services.sets.question_sets import find_question_set, keep_questions
from app.services.sets.rubric_sets import find_rubric_set, keep_rubrics
from app.services.sets.sets import jobs_of_set, list_sets

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

SETS_A_PAGE = 50
ENTRIES_A_PAGE = 100
"""Personas of a set, or those with questions, that a page shows."""
JOBS_SHOWN = 20
COLUMNS = ("persona", "task", "question")
"""Of questions as CSV."""

Start = Annotated[int, Query(ge=0, le=1_000_000, description="Entries before the first that is shown.")]
Json = dict[str, Any]


@router.get("/persona-sets")
@needs(Scope.READ)
async def personas(services: ServicesDep, tenant: TenantDep, after: After = None) -> Response:
    """The persona sets, and the form that makes one."""
    found = await list_sets(
        services.engine, "persona_sets", tenant, limit=SETS_A_PAGE + 1, after=cursors.beginning(after)
    )
    built_in = {} if after else services.submission.catalog.persona_sets
    return _listed(
        "persona_sets.html.j2",
        found,
        built_in={name: len(ids) for name, ids in built_in.items()},
        later=after is not None,
    )


@router.post("/persona-sets")
@needs(Scope.SUBMIT)
async def keep_persona_set(request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Keeps pasted personas as a set and shows it, or what is wrong with them."""
    typed = await typed_by(request)
    text = typed.text("personas")
    people, wrong = await on_a_thread(tenant, partial(pasted_personas, text))
    if not wrong:
        sent = {"name": typed.text("name") or None, "personas": people}
        try:
            body = validated(PersonaSetIn, sent)
            catalog = services.submission.catalog
            made = await keep_personas(
                services.engine, catalog, tenant, body.name, body.personas, "/personas"
            )
            return RedirectResponse(f"/persona-sets/{made.id}", HTTPStatus.SEE_OTHER)
        except InvalidJobError as error:
            wrong = list(error.errors)
    return _refused("persona_sets.html.j2", typed, wrong)


@router.get("/persona-sets/{set_id}")
@needs(Scope.READ)
async def persona_set(
    set_id: persona_sets.SetId, services: ServicesDep, tenant: TenantDep, start: Start = 0
) -> Response:
    """Who a set's personas are."""
    found = await find_persona_set(services.engine, services.submission.catalog, tenant, set_id)
    dimensions = services.submission.catalog.dimensions
    words = InWords((), map(DimensionInWords.of, dimensions.values()))
    people = [
        {
            "description": each.description,
            "persona": each.id,
            "traits": [words.trait(dimension, level) for dimension, level in each.traits.items()],
        }
        for each in found.personas[start : start + ENTRIES_A_PAGE]
    ]
    return page(
        "persona_set.html.j2",
        here="/persona-sets",
        found=found,
        people=people,
        jobs=await jobs_of_set(services.engine, tenant, set_id, JOBS_SHOWN),
        **_places(start, len(found.personas)),
    )


@router.get("/question-sets")
@needs(Scope.READ)
async def questions(services: ServicesDep, tenant: TenantDep, after: After = None) -> Response:
    """The question sets, and the form that makes one."""
    found = await list_sets(
        services.engine, "question_sets", tenant, limit=SETS_A_PAGE + 1, after=cursors.beginning(after)
    )
    return _listed("question_sets.html.j2", found, later=after is not None)


@router.post("/question-sets")
@needs(Scope.SUBMIT)
async def keep_question_set(request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Keeps pasted questions as a set and shows it, or what is wrong with them."""
    typed = await typed_by(request)
    asked, wrong = await on_a_thread(tenant, partial(pasted_questions, typed.text("questions")))
    if not wrong:
        sent = {"name": typed.text("name") or None, "questions": asked}
        try:
            body = validated(QuestionSetIn, sent)
            made = await keep_questions(services.engine, tenant, body, services.submission.catalog)
            return RedirectResponse(f"/question-sets/{made.id}", HTTPStatus.SEE_OTHER)
        except InvalidJobError as error:
            wrong = list(error.errors)
    return _refused("question_sets.html.j2", typed, wrong)


@router.get("/question-sets/{set_id}")
@needs(Scope.READ)
async def question_set(
    set_id: question_sets.SetId, services: ServicesDep, tenant: TenantDep, start: Start = 0
) -> Response:
    """What a set's personas are asked."""
    found = await find_question_set(services.engine, tenant, set_id)
    tasks = services.submission.catalog.gym.tasks
    asked = list(found.questions.items())[start : start + ENTRIES_A_PAGE]
    return page(
        "question_set.html.j2",
        here="/persona-sets",
        found=found,
        asked=[
            (who, [(tasks[task].title if task in tasks else task, texts) for task, texts in by_task.items()])
            for who, by_task in asked
        ],
        jobs=await jobs_of_set(services.engine, tenant, set_id, JOBS_SHOWN),
        **_places(start, len(found.questions)),
    )


@router.get("/rubric-sets")
@needs(Scope.READ)
async def rubrics(services: ServicesDep, tenant: TenantDep, after: After = None) -> Response:
    """The rubric sets, and the form that makes one."""
    found = await list_sets(
        services.engine, "rubric_sets", tenant, limit=SETS_A_PAGE + 1, after=cursors.beginning(after)
    )
    return _listed("rubric_sets.html.j2", found, later=after is not None)


@router.post("/rubric-sets")
@needs(Scope.SUBMIT)
async def keep_rubric_set(request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Keeps pasted rubrics as a set and shows it, or what is wrong with them."""
    typed = await typed_by(request)
    try:
        words = loads(typed.text("tasks").encode())
        if not isinstance(words, dict) or not words.keys() & RubricSetIn.model_fields.keys():
            words = {"tasks": words}
        body = validated(RubricSetIn, words | {"name": typed.text("name") or words.get("name")})
        made = await keep_rubrics(services.engine, services.submission.catalog, tenant, body)
        return RedirectResponse(f"/rubric-sets/{made.id}", HTTPStatus.SEE_OTHER)
    except InvalidJobError as error:
        wrong = list(error.errors)
    except (ProblemError, ValueError) as error:
        wrong = [FieldError("/tasks", f"is not JSON: {getattr(error, 'detail', error)}")]
    return _refused("rubric_sets.html.j2", typed, wrong)


@router.get("/rubric-sets/{set_id}")
@needs(Scope.READ)
async def rubric_set(set_id: rubric_sets.SetId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The words of a set."""
    found = await find_rubric_set(services.engine, tenant, set_id)
    catalog = services.submission.catalog
    titles = {id_: task.title for id_, task in catalog.tasks.items()}
    titles |= {id_: task.title for id_, task in catalog.gym.tasks.items()}
    return page(
        "rubric_set.html.j2",
        here="/persona-sets",
        found=found,
        titles=titles,
        jobs=await jobs_of_set(services.engine, tenant, set_id, JOBS_SHOWN),
    )


def pasted_questions(text: str) -> tuple[object, list[FieldError]]:
    """The questions that were pasted, by task by persona, and what is wrong with them.

    Args:
        text: JSON as PersonaGym publishes it, by persona, or CSV with the columns persona, task and question.
    """
    if text.startswith("{"):
        try:
            return loads(text.encode()), []
        except (ProblemError, ValueError) as error:
            return None, [FieldError("/questions", f"is not JSON: {getattr(error, 'detail', error)}")]
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    found: dict[str, dict[str, list[str]]] = {}
    places: list[int] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not places:
                places = _places_of_columns(cells)
                if not places:
                    return None, [FieldError("/questions", "the first line must be persona,task,question")]
            elif any(cells):
                if len(cells) != len(places) or not all(cells):
                    message = f"line {rows.line_num} must have a persona, a task and a question"
                    return None, [FieldError("/questions", message)]
                who, task, question = (cells[place] for place in places)
                found.setdefault(who, {}).setdefault(task, []).append(question)
    except csv.Error as error:
        return None, [FieldError("/questions", f"line {rows.line_num} is not CSV: {error}")]
    return found, []


def _places_of_columns(header: Sequence[str]) -> list[int]:
    names = [name.casefold() for name in header]
    return [names.index(name) for name in COLUMNS] if sorted(names) == sorted(COLUMNS) else []


def _listed(template: str, found: Sequence[SetSummary], **shown: Any) -> Response:
    last = found[SETS_A_PAGE - 1] if len(found) > SETS_A_PAGE else None
    return page(
        template,
        here="/persona-sets",
        sets=found[:SETS_A_PAGE],
        following=None if last is None else cursors.of_moment(last.created_at, last.id),
        typed=Typed({}),
        errors=[],
        **shown,
    )


def _refused(template: str, typed: Typed, errors: Sequence[FieldError]) -> Response:
    """The form as it was filled in, and what is wrong with it, without the list."""
    return page(
        template, HTTPStatus.UNPROCESSABLE_ENTITY, here="/persona-sets", sets=None, typed=typed, errors=errors
    )


def _places(start: int, count: int) -> Json:
    """Where the parts of a long set before and behind the one that is shown begin."""
    return {
        "start": start,
        "before": max(0, start - ENTRIES_A_PAGE) if start else None,
        "following": start + ENTRIES_A_PAGE if start + ENTRIES_A_PAGE < count else None,
        "count": count,
    }
