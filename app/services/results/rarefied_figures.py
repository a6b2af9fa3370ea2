"""RC_atom and IC_atom of models at the same number of sentences, for comparisons of texts of different length."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.results import result_queries
from app.db.results.result_queries import ScoreRow
from app.domain.metrics.rarefied import rarefied_ic_atom, rarefied_rc_atom, run_units
from app.domain.metrics.registry import range_of
from app.domain.metrics.scores import CellScores
from app.domain.results.comparison import RAREFIED, Figure, Place
from app.services.job_context import JobContext
from app.services.results.cell_rows import cell_scores

Figures = dict[tuple[str, Place], Figure]
TOO_FEW = "too_few_sentences: too few scored sentences to leave out some"


class ModelOfJob(NamedTuple):
    """One side of a comparison."""

    job: JobRow
    context: JobContext
    model: str


async def read_rarefied(engine: AsyncEngine, sides: Sequence[ModelOfJob]) -> list[Figures]:
    """Each model's figures by metric and place, at the places that all have."""
    return await asyncio.to_thread(rarefied_figures, [await _read_scores(engine, side) for side in sides])


async def _read_scores(engine: AsyncEngine, side: ModelOfJob) -> dict[Place, list[CellScores]]:
    """Each judge's scores of each cell."""
    context = side.context
    cells = {
        cell.ordinal: cell for cell in context.cells if context.spec.models[cell.model].label == side.model
    }
    grouped: dict[tuple[int, int, int], list[ScoreRow]] = defaultdict(list)
    async with engine.connect() as connection:
        async for row in result_queries.scores(connection, side.job.tenant, side.job.id, list(cells)):
            grouped[row.cell, row.trait, row.judge].append(row)
    found: dict[Place, list[CellScores]] = defaultdict(list)
    for (ordinal, trait, _), rows in sorted(grouped.items()):
        cell = cells[ordinal]
        dimension, level = cell.dimensions[trait].id, cell.persona.traits[trait].level
        found[Place(cell.persona.id, cell.task.id, dimension, level)].append(cell_scores(cell, trait, rows))
    return found


def rarefied_figures(sides: Sequence[Mapping[Place, Sequence[CellScores]]]) -> list[Figures]:
    """See :func:`read_rarefied`; CPU only.

    RC_atom is taken at as many sentences as the shortest run of any has, runs with a single one aside; IC_atom at two.

    Args:
        sides: Each judge's scores of each model's cells.
    """
    all_: list[Figures] = [{} for _ in sides]
    for place in sorted(set.intersection(*(set(side) for side in sides))):
        units = [int(n) for side in sides for scores in side[place] for n in run_units(scores)]
        for figures, own in zip(all_, (side[place] for side in sides), strict=True):
            scale = (float(own[0].scale.minimum), float(own[0].scale.maximum))
            values = {
                "rc_atom": [rarefied_rc_atom(scores, min(units)) for scores in own] if units else [],
                "ic_atom": [rarefied_ic_atom(scores) for scores in own],
            }
            for name, found in values.items():
                known = [value for value in found if value is not None]
                value, reason = (fmean(known), None) if known else (None, TOO_FEW)
                figures[RAREFIED[name], place] = Figure(value, reason, range_of(name, scale))
    return all_
