"""Draws a report's figures as files."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.personagym.environments import Environments
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.services.errors import NotFoundError
from app.services.job_context import JobContext
from app.services.results.baselines import BaselineFilter, baselines
from app.services.results.environments import read_environments
from app.services.results.run_distances import read_varying_cells
from app.services.results.single_option import only

FigureName = Literal[
    "models",
    "persona_scores",
    "control",
    "published",
    "published_persona_scores",
    "heat_map",
    "scores",
    "cells",
    "accuracy",
    "refusals",
    "environments",
    "persona_words",
    "runs",
]
FigureFormat = Literal["svg", "png"]
Theme = Literal["light", "dark"]

DRAWING = ThreadPoolExecutor(1, thread_name_prefix="figures")
"""The thread of all figures: matplotlib can't draw two at a time."""

AMONG_PUBLISHED = ("published", "published_persona_scores")
"""The figures in which the job's models stand among published ones."""
OF_ONE_MODEL = ("heat_map", "cells")
"""The figures that show a single model."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """Which figure, and how.

    Attributes:
        name: Its name.
        format: Of the file.
        model: For those of one model; ``None`` if the job has only one.
        theme: ``None`` for light, and in an SVG for whichever the reader prefers.
    """

    name: FigureName
    format: FigureFormat
    model: str | None = None
    theme: Theme | None = None


async def draw_figure(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    results: str,
    wanted: FigureRequest,
    named: Sequence[BaselineFigures] = (),
) -> bytes:
    """A figure of a job's results as they stand, with baselines of one's own among published ones.

    Raises:
        NotFoundError: If the job has nothing to show there.
        InvalidJobError: If the model is missing, unknown or beside the point.
    """
    of_one = wanted.name in OF_ONE_MODEL
    if wanted.model is not None and not of_one:
        raise InvalidJobError([FieldError("/query/model", f"only for {' and '.join(OF_ONE_MODEL)}")])
    found = await asyncio.to_thread(Results.read, results)
    model = only("model", wanted.model, [cell.model for cell in found.cells]) if of_one else ""
    distances = []
    if wanted.name == "runs":
        distances = await read_varying_cells(engine, job, context, found.cells)
    environments = None
    if wanted.name == "environments":
        environments = await read_environments(engine, job, context)
    drawn = await asyncio.get_running_loop().run_in_executor(
        DRAWING, _draw, found, wanted, model, distances, environments, named
    )
    if drawn is None:
        raise NotFoundError(f"job {job.id} has no data for the figure {wanted.name}")
    return drawn


def _draw(
    results: Results,
    wanted: FigureRequest,
    model: str,
    distances: Sequence[Json],
    environments: Environments | None,
    named: Sequence[BaselineFigures],
) -> bytes | None:
    # Imported where it is used, which is on a thread: matplotlib takes a second.
    from app.reports.figures.files import figure_file  # noqa: PLC0415

    return figure_file(
        results,
        wanted.name,
        model=model,
        distances=distances,
        baselines=baselines(BaselineFilter()),
        named=named,
        environments=environments,
        file_format=wanted.format,
        theme=wanted.theme,
    )
