"""`/persona-sets`, `/question-sets` and `/rubric-sets`: what is in each kept set, which jobs use it, and how to keep another one."""

import csv
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from app.api.http.dependencies import Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import ProblemError, validated
from app.api.http.strict_json import loads
from app.api.sets.persona_sets import SET_NAME
from app.api.sets.reading import id_of
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.contract import DimensionInWords
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import KeptSet, PersonaSetIn, QuestionSetIn
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET, RUBRIC_SET, SetKind
from app.reports.views.in_words import InWords
from app.services.long_texts import on_a_thread
from app.services.sets.persona_sets import find_persona_set, keep_personas
from app.services.sets.question_sets import keep_questions
from app.services.sets.rubric_sets import keep_rubrics
from app.services.sets.sets import find_set, jobs_of_set, list_sets

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

SETS_A_PAGE = 50
ENTRIES_A_PAGE = 100
"""Personas of a set, or those with questions, that a page shows."""
JOBS_SHOWN = 20
COLUMNS = ("persona", "task", "question")
"""Of questions as CSV."""

Start = Annotated[int, Query(ge=0, le=1_000_000, description="Entries before the first that is shown.")]
Json = dict[str, Any]


async def _keep_personas(services: Services, tenant: str, typed: Typed) -> KeptSet:
    people, wrong = await on_a_thread(tenant, partial(pasted_personas, typed.text("personas")))
    if wrong:
        raise InvalidJobError(wrong)
    body = validated(PersonaSetIn, {"name": typed.text("name") or None, "personas": people})
    catalog = services.submission.catalog
    return await keep_personas(services.engine, catalog, tenant, body.name, body.personas, "/personas")


async def _keep_questions(services: Services, tenant: str, typed: Typed) -> KeptSet:
    asked, wrong = await on_a_thread(tenant, partial(pasted_questions, typed.text("questions")))
    if wrong:
        raise InvalidJobError(wrong)
    body = validated(QuestionSetIn, {"name": typed.text("name") or None, "questions": asked})
    return await keep_questions(services.engine, tenant, body, services.submission.catalog)


async def _keep_rubrics(services: Services, tenant: str, typed: Typed) -> KeptSet:
    try:
        words = loads(typed.text("tasks").encode())
    except (ProblemError, ValueError) as error:
        raise InvalidJobError([_no_json("/tasks", error)]) from error
    if not isinstance(words, dict) or not words.keys() & RubricSetIn.model_fields.keys():
        words = {"tasks": words}
    body = validated(RubricSetIn, words | {"name": typed.text("name") or words.get("name")})
    return await keep_rubrics(services.engine, services.submission.catalog, tenant, body)


Keeper = Callable[[Services, str, Typed], Awaitable[KeptSet]]
KEEPERS: Mapping[SetKind[KeptSet], Keeper] = {
    PERSONA_SET: _keep_personas,
    QUESTION_SET: _keep_questions,
    RUBRIC_SET: _keep_rubrics,
}
"""What keeps the set that was typed into the form of each kind, or raises :class:`InvalidJobError`; in the order of the tabs."""


TABS = [(f"{each.noun.capitalize()}s", f"/{each.folder}") for each in KEEPERS]


def _page(kind: SetKind[KeptSet], status: HTTPStatus = HTTPStatus.OK, **shown: Any) -> Response:
    return page(
        f"{kind.name}s.html.j2", status, here=f"/{PERSONA_SET.folder}", kind=kind, kinds=TABS, **shown
    )


def _add_pages(kind: SetKind[KeptSet], keep: Keeper) -> None:
    """Adds the page that lists sets of a kind, with the form that makes one."""

    @router.get(f"/{kind.folder}")
    @needs(Scope.READ)
    async def listed(services: ServicesDep, tenant: TenantDep, after: After = None) -> Response:
        begin = cursors.beginning(after)
        found = await list_sets(services.engine, kind, tenant, limit=SETS_A_PAGE + 1, after=begin)
        sets, following = cursors.cut(found, SETS_A_PAGE, cursors.of_entry)
        built_in = services.submission.catalog.persona_sets if kind is PERSONA_SET and not after else {}
        return _page(
            kind,
            sets=sets,
            built_in={name: len(ids) for name, ids in built_in.items()},
            following=following,
            later=after is not None,
            typed=Typed({}),
            errors=[],
        )

    @router.post(f"/{kind.folder}")
    @needs(Scope.SUBMIT)
    async def kept(request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
        """Keeps what was typed as a set and shows it, or the form as it was filled in with what is wrong."""
        typed = await typed_by(request)
        try:
            made = await keep(services, tenant, typed)
        except InvalidJobError as error:
            return _page(kind, HTTPStatus.UNPROCESSABLE_ENTITY, sets=None, typed=typed, errors=error.errors)
        return RedirectResponse(f"/{kind.folder}/{made.id}", HTTPStatus.SEE_OTHER)


for each, keeper in KEEPERS.items():
    _add_pages(each, keeper)


@router.get("/persona-sets/{set_id}")
@needs(Scope.READ)
async def persona_set(
    set_id: Annotated[str, SET_NAME], services: ServicesDep, tenant: TenantDep, start: Start = 0
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
        here=f"/{PERSONA_SET.folder}",
        found=found,
        people=people,
        jobs=await jobs_of_set(services.engine, tenant, set_id, JOBS_SHOWN),
        **_places(start, len(found.personas)),
    )


@router.get("/question-sets/{set_id}")
@needs(Scope.READ)
async def question_set(
    set_id: Annotated[str, id_of(QUESTION_SET)], services: ServicesDep, tenant: TenantDep, start: Start = 0
) -> Response:
    """What a set's personas are asked."""
    found = await find_set(services.engine, QUESTION_SET, tenant, set_id)
    tasks = services.submission.catalog.gym.tasks
    asked = list(found.questions.items())[start : start + ENTRIES_A_PAGE]
    return page(
        "question_set.html.j2",
        here=f"/{PERSONA_SET.folder}",
        found=found,
        asked=[
            (who, [(tasks[task].title if task in tasks else task, texts) for task, texts in by_task.items()])
            for who, by_task in asked
        ],
        jobs=await jobs_of_set(services.engine, tenant, set_id, JOBS_SHOWN),
        **_places(start, len(found.questions)),
    )


@router.get("/rubric-sets/{set_id}")
@needs(Scope.READ)
async def rubric_set(
    set_id: Annotated[str, id_of(RUBRIC_SET)], services: ServicesDep, tenant: TenantDep
) -> Response:
    """The words of a set."""
    found = await find_set(services.engine, RUBRIC_SET, tenant, set_id)
    catalog = services.submission.catalog
    titles = {id_: task.title for id_, task in catalog.tasks.items()}
    titles |= {id_: task.title for id_, task in catalog.gym.tasks.items()}
    return page(
        "rubric_set.html.j2",
        here=f"/{PERSONA_SET.folder}",
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
            return None, [_no_json("/questions", error)]
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


def _no_json(pointer: str, error: Exception) -> FieldError:
    return FieldError(pointer, f"is not JSON: {getattr(error, 'detail', error)}")


def _places_of_columns(header: Sequence[str]) -> list[int]:
    names = [name.casefold() for name in header]
    return [names.index(name) for name in COLUMNS] if sorted(names) == sorted(COLUMNS) else []


def _places(start: int, count: int) -> Json:
    """Where the parts of a long set before and behind the one that is shown begin."""
    return {
        "start": start,
        "before": max(0, start - ENTRIES_A_PAGE) if start else None,
        "following": start + ENTRIES_A_PAGE if start + ENTRIES_A_PAGE < count else None,
        "count": count,
    }
