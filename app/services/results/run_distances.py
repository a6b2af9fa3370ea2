"""Distances between one cell's runs, whose mean is RC_atom; computed on request."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.results import result_queries
from app.db.results.result_queries import ScoreRow
from app.domain.jobs.plan import Cell
from app.domain.metrics.rc_atom import distributions, run_distances
from app.domain.metrics.scores import CellScores
from app.domain.results.contract import CellResult, JudgesDistances, RunDistances, RunOfCell
from app.services.job_context import JobContext
from app.services.results.cell_rows import cell_scores
from app.services.results.single_option import only

MAX_RUNS = 100
"""The matrix grows with the square of the runs; the paper's cells have 30."""
DIGITS = 4


@dataclass(frozen=True, slots=True)
class CellChoice:
    """Which cell of the results.

    Attributes:
        model: The model's label; ``None`` if the job has only one.
        persona: The persona's id.
        task: The task's id.
        dimension: The dimension's id; ``None`` if the cell's texts are judged on only one.
    """

    model: str | None
    persona: str
    task: str
    dimension: str | None


async def read_varying_cells(
    engine: AsyncEngine, job: JobRow, context: JobContext, cells: Sequence[CellResult]
) -> list[dict[str, Any]]:
    """The distances of those cells that vary most, the most varying first."""
    # Imported when needed, like everything of the reports.
    from app.reports.views.run_matrices import varying_cells  # noqa: PLC0415

    wanted = (
        CellChoice(cell.model, cell.persona, cell.task, cell.dimension) for cell in varying_cells(cells)
    )
    return [(await read_run_distances(engine, job, context, choice)).model_dump() for choice in wanted]


async def read_run_distances(
    engine: AsyncEngine, job: JobRow, context: JobContext, wanted: CellChoice
) -> RunDistances:
    """A cell's run-by-run distances, judge by judge, as they stand.

    Raises:
        InvalidJobError: If the job has no such cell, or several.
    """
    cell, trait = _find(context, wanted)
    by_judge: dict[int, list[ScoreRow]] = defaultdict(list)
    async with engine.connect() as connection:
        async for row in result_queries.scores(connection, job.tenant, job.id, [cell.ordinal]):
            if row.trait == trait:
                by_judge[row.judge].append(row)
    return await asyncio.to_thread(distances_of, context, cell, trait, by_judge)


def _find(context: JobContext, wanted: CellChoice) -> tuple[Cell, int]:
    model = only("model", wanted.model, [model.label for model in context.spec.models])
    own = [cell for cell in context.cells if context.spec.models[cell.model].label == model]
    persona = only("persona", wanted.persona, [cell.persona.id for cell in own])
    of_persona = [cell for cell in own if cell.persona.id == persona]
    task = only("task", wanted.task, [cell.task.id for cell in of_persona])
    (cell,) = [cell for cell in of_persona if cell.task.id == task]
    known = [dimension.id for dimension in cell.dimensions]
    return cell, known.index(only("dimension", wanted.dimension, known))


def distances_of(
    context: JobContext, cell: Cell, trait: int, rows: Mapping[int, list[ScoreRow]]
) -> RunDistances:
    """See :func:`read_run_distances`; CPU only.

    Args:
        context: The job's.
        cell: Which cell.
        trait: Which of the persona's traits.
        rows: The cell's and trait's rows by the judge's index, in any order.
    """
    spec = context.spec
    instructions = {row.run: row.instruction for found in rows.values() for row in found}
    runs = sorted(instructions)[:MAX_RUNS]
    model = spec.models[cell.model]
    return RunDistances(
        model=model.label,
        persona=cell.persona.id,
        task=cell.task.id,
        dimension=cell.dimensions[trait].id,
        level=cell.persona.traits[trait].level,
        simulated=model.simulated or any(judge.simulated for judge in spec.judges),
        width=cell.dimensions[trait].scale.width,
        runs=[RunOfCell(run=run, instruction=instructions[run]) for run in runs],
        runs_in_all=len(instructions),
        by_judge=[
            JudgesDistances(
                judge=judge.label, distances=_matrix(cell_scores(cell, trait, rows.get(n, [])), runs)
            )
            for n, judge in enumerate(spec.judges)
        ],
    )


def _matrix(scores: CellScores, runs: Sequence[int]) -> list[list[float | None]]:
    """Distances run by run; ``None`` where one of the two has no scored unit."""
    cdfs, _, used = distributions(scores)
    places = {int(run): place for place, run in enumerate(scores.run_ids[used])}
    known = [place for run, place in places.items() if run in set(runs)]
    rows = [n for n, run in enumerate(runs) if run in places]
    matrix: list[list[float | None]] = [[None] * len(runs) for _ in runs]
    for n, distances in zip(rows, np.round(run_distances(cdfs[known]), DIGITS).tolist(), strict=True):
        for m, distance in zip(rows, distances, strict=True):
            matrix[n][m] = distance
    return matrix
