"""Compares several models, of one job or of several, and published ones: each with each other one."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from app.domain.errors import FieldError, InvalidJobError
from app.domain.results.comparison import Pairing, population_note
from app.domain.results.contract import Results
from app.domain.results.ranking import ComparisonOfModels, ModelOfMany, Ranking, rank_in_tasks, rank_models
from app.domain.results.request import MOST_MODELS, SideIn
from app.domain.statistics.paired import ALPHA
from app.services.jobs.view import find_job
from app.services.results.compare import (
    Comparer,
    Side,
    notes_on,
    personas_of,
    reworded_personas,
    same_model,
    without,
)


async def compare_models(
    sources: Comparer, tenant: str, wanted: Sequence[SideIn], pairing: Pairing = "cells"
) -> ComparisonOfModels:
    """All pairs of these models.

    Args:
        sources: Where results are read.
        tenant: Whose jobs.
        wanted: The models; a job without one stands for all of its own.
        pairing: What is compared: a cell of each, or an item that all have answered as the same persona.

    Raises:
        NotFoundError: If a job does not exist.
        WrongStateError: If a job is not over.
        InvalidJobError: If a model does not exist, is named twice, or they are too few, too many or have nothing in common.
    """
    read: dict[str, Results] = {}
    sides: list[Side] = []
    for pointer, each in await _each_model(sources, tenant, wanted):
        side = await sources.side(tenant, pointer, each, pairing, read)
        if side.only_scores:
            message = "a published PersonaGym model has no values by persona; compare it with one model"
            raise InvalidJobError([FieldError(f"{pointer}/baseline", message)])
        if any(same_model(side, other) for other in sides):
            raise InvalidJobError([FieldError(pointer, "repeats a model")])
        sides.append(side)
    if pairing == "cells":
        sides = list(await sources.rarefied(sides))
    found = await asyncio.to_thread(_compared, sides, pairing)
    if pairing == "cells":
        found.calibrated = await sources.calibrated([each.name for each in found.models], sides)
    return found


async def _each_model(sources: Comparer, tenant: str, wanted: Sequence[SideIn]) -> list[tuple[str, SideIn]]:
    """One side for each model, and where it was asked for."""
    found = []
    for n, side in enumerate(wanted):
        pointer = f"/models/{n}"
        if side.job is None or side.model is not None:
            found.append((pointer, side))
            continue
        job = await find_job(sources.engine, tenant, side.job)
        context = await sources.contexts.get(tenant, job.id)
        found += [
            (pointer, SideIn.model_construct(job=job.id, model=model.label)) for model in context.spec.models
        ]
    if not 2 <= len(found) <= MOST_MODELS:  # noqa: PLR2004 - a pair
        message = f"must be 2 to {MOST_MODELS} models; these are {len(found)}"
        raise InvalidJobError([FieldError("/models", message)])
    return found


def _compared(sides: Sequence[Side], pairing: Pairing) -> ComparisonOfModels:
    reworded = reworded_personas(sides)
    named = _named(sides)
    figures = {name: without(side, reworded) for name, side in named.items()}
    rankings = rank_models(figures)
    if not rankings:
        item = "" if pairing == "cells" else ", item"
        message = f"have no persona, task{item} and dimension in common for which all of them have a value"
        raise InvalidJobError([FieldError("/models", message)])
    primary = rankings[0]
    return ComparisonOfModels(
        models=[
            ModelOfMany(
                **side.about.model_dump(),
                name=name,
                left_out=sum(metric == primary.metric for metric, _ in side.figures) - primary.values,
            )
            for name, side in named.items()
        ],
        pairing=pairing,
        primary=primary.metric,
        simulated=any(side.about.simulated for side in sides),
        rankings=rankings,
        in_tasks=rank_in_tasks(figures),
        calibrated=[],
        personas=personas_of(sides),
        notes=[*notes_on(named, "all"), *filter(None, [_populations(rankings), _attainable(primary)])],
    )


def _named(sides: Sequence[Side]) -> dict[str, Side]:
    """The sides by a name that no other has."""
    often = Counter(side.about.model for side in sides)
    return {
        side.about.model
        if often[side.about.model] == 1
        else f"{side.about.model} ({side.about.named or side.about.job or 'published'})": side
        for side in sides
    }


def _populations(rankings: Sequence[Ranking]) -> str | None:
    found: dict[str, list[str]] = {}
    for ranking in rankings:
        if any(pair.p_value is not None for pair in ranking.differences):
            found.setdefault(ranking.population, []).append(ranking.metric)
    return population_note(found)


def _attainable(primary: Ranking) -> str | None:
    """What so few personas cannot show, however great a difference; ``None`` where they could."""
    smallest, pairs = primary.smallest_p_value, len(primary.differences)
    if smallest is None or smallest * pairs <= ALPHA:
        return None
    return (
        f"{primary.personas} persona{'s' * (primary.personas != 1)} cannot give a p-value below {smallest:.2g},"
        f" or below {min(1.0, smallest * pairs):.2g} corrected for {pairs} pairs."
    )
