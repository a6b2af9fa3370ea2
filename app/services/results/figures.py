"""A report's figures as files."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.readers.pool import ReaderPool
from app.services.errors import NotFoundError
from app.services.job_context import JobContext
from app.services.results.drawing import FIGURE, beside_published, draw, figure
from app.services.results.environments import read_environments
from app.services.results.run_distances import read_varying_cells

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
    readers: ReaderPool,
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
        BusyError: If the figure can't be drawn now.
    """
    of_one = wanted.name in OF_ONE_MODEL
    if wanted.model is not None and not of_one:
        raise InvalidJobError([FieldError("/query/model", f"only for {' and '.join(OF_ONE_MODEL)}")])
    distances: Sequence[Json] = ()
    published = None
    if wanted.name in (*AMONG_PUBLISHED, "accuracy", "runs"):
        found = await asyncio.to_thread(Results.read, results)
        if wanted.name == "runs":
            distances = await read_varying_cells(engine, job, context, found.cells)
        else:
            published = await asyncio.to_thread(beside_published, found, named)
    environments = None
    if wanted.name == "environments":
        environments = await read_environments(engine, job, context)
    drawn = await draw(
        readers,
        FIGURE,
        job.tenant,
        figure,
        results,
        wanted.name,
        wanted.model,
        of_one,
        distances,
        environments,
        () if published is None else published.among,
        () if published is None else published.accuracy,
        wanted.format,
        wanted.theme,
    )
    if not drawn:
        raise NotFoundError(f"job {job.id} has no data for the figure {wanted.name}")
    return drawn
