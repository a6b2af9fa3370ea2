"""`/compare`: two models or several, of one job, of more, or published ones, and what their differences say."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from app.api.console.summaries import job_words, label
from app.api.http.access import needs
from app.api.http.dependencies import (
    TAKES_A_TURN,
    Services,
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
from app.domain.results.comparison import Comparison
from app.domain.results.ranking import ComparisonOfModels, differ
from app.domain.results.request import MOST_MODELS, SideIn
from app.reports.views.ranking_picture import picture, tied_with_first
from app.reports.views.top_comparison import decides, is_shown, main_row
from app.services.errors import NotFoundError, WrongStateError
from app.services.identifiers import response_id
from app.services.results.baselines import BaselineFilter, baselines
from app.services.results.compare import Comparer
from app.services.results.compare_models import compare_models
from app.services.results.named_baselines import list_baselines

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

RECENT_JOBS = 50
"""Jobs whose models can be chosen; others by their address."""
LEFT_OUT = 100
"""Unpaired values that are listed."""

PERSONAS_SHOWN = 200
"""Personas of the comparison that are described."""

BASELINE = "baseline"
"""What a side begins with that is published, as on the command line; else it is ``JOB:MODEL``."""


OWN = "Your baselines"
UNPAIRED = "Published results (PersonaGym)"
"""The published models that tell nothing by persona: each can be compared with one other alone."""

Options = Mapping[str, list[tuple[str, str]]]
"""What can be chosen: by the name of a group, values and what they are called."""

Side = Annotated[str, Query(max_length=400)]


@router.get("/compare", dependencies=[TAKES_A_TURN])
@needs(Scope.READ)
async def compare(
    services: ServicesDep,
    tenant: TenantDep,
    a: Side = "",
    b: Side = "",
    model: Annotated[list[Side], Query(max_length=MOST_MODELS)] = [],  # noqa: B006 - never changed
) -> Response:
    """A comparison, once both sides or several models are chosen, and the forms to choose them."""
    options = await _options(services, tenant)
    found: Comparison | None = None
    many: ComparisonOfModels | None = None
    errors: dict[str, str] = {}
    status = HTTPStatus.OK
    try:
        if model:
            many = await compare_models(_comparer(services), tenant, [_side(each) for each in model])
        elif a and b:
            found = await _comparer(services).compare(tenant, _side(a), _side(b))
    except InvalidJobError as error:
        errors = {_place(each.pointer, model): each.message for each in error.errors}
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    except NotFoundError as error:
        errors, status = {"": str(error)}, HTTPStatus.NOT_FOUND
    except WrongStateError as error:
        errors, status = {"": str(error)}, HTTPStatus.CONFLICT
    compared = found or many
    personas = {} if compared is None else {each.id: each for each in compared.personas}
    return page(
        "compare.html.j2",
        status,
        here="/compare",
        options=options,
        unpaired_group=UNPAIRED,
        chosen={"a": a, "b": b},
        several=model,
        errors=errors,
        found=found,
        main=None if found is None else main_row(found.differences),
        decides=decides,
        shown=is_shown,
        texts=None if found is None else await _texts(services, tenant, found),
        left_out=[] if found is None else found.left_out[:LEFT_OUT],
        personas=personas,
        people=[
            {
                "description": each.description,
                "persona": id_,
                "traits": [trait.words for trait in each.traits],
            }
            for id_, each in list(personas.items())[:PERSONAS_SHOWN]
        ],
        many=many,
        differ=differ,
        tied=[] if many is None else tied_with_first(many.rankings[0]),
        picture=[] if many is None else picture(many),
    )


async def _texts(services: Services, tenant: str, found: Comparison) -> str | None:
    """Where the texts of both sides can be read beside each other; ``None`` for published figures, which have none."""
    if found.a.job is None or found.b.job is None:
        return None
    context = await services.contexts.get(tenant, found.a.job)
    first = next(cell for cell in context.cells if context.spec.models[cell.model].label == found.a.model)
    path = f"/jobs/{found.a.job}/responses/{response_id(found.a.job, first.ordinal, 0, 0)}/side-by-side"
    return path if found.a.job == found.b.job else f"{path}?with={found.b.job}"


def _place(pointer: str, models: Sequence[str]) -> str:
    """Which side, or which of several models, is wrong; empty for all of them."""
    first, _, rest = pointer.strip("/").partition("/")
    if first != "models":
        return first
    place = rest.partition("/")[0]
    return models[int(place)] if place.isdigit() else "These models"


def _comparer(services: Services) -> Comparer:
    return Comparer(services.engine, services.contexts, services.results)


def _side(text: str) -> SideIn:
    """A choice of the page, or what else is in its address: whatever names nothing is told by who looks it up."""
    first, _, rest = text.partition(":")
    if first == BASELINE:
        return SideIn.model_construct(baseline=rest)
    return SideIn.model_construct(job=job_id_of(first), model=rest or None)


async def _options(services: Services, tenant: str) -> Options:
    async with services.engine.connect() as connection:
        recent = [each.job for each in await list_jobs(connection, tenant, JobFilter(), limit=RECENT_JOBS)]
    of_jobs = {
        job_words(job): list(_models(job))
        for job in recent
        if job.status.is_terminal and "generate" not in job.request
    }
    named = await list_baselines(services.engine, tenant)
    own = {OWN: [(f"{BASELINE}:{each.name}", f"{each.name} ({each.model})") for each in named]}
    return (own if named else {}) | of_jobs | await asyncio.to_thread(_published)


def _models(job: JobRow) -> Iterator[tuple[str, str]]:
    again = "responses" in job.request  # the texts of another job, by its models
    models = (job.models if again else job.request.get("models")) or []
    if not models:
        yield job.id, "existing texts"
    for model in models:
        yield f"{job.id}:{label(model)}", label(model)


def _published() -> dict[str, list[tuple[str, str]]]:
    found = baselines(BaselineFilter())
    models = {
        "Published results (atomic paper)": [cell.model for cell in found.cells],
        UNPAIRED: [row.model for row in found.persona_score_totals],
    }
    return {
        paper: [(f"{BASELINE}:{model}", model) for model in dict.fromkeys(own)]
        for paper, own in models.items()
    }
