"""What two models' differences vary with: in a finished job, else in the published cells, else as is assumed."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice

from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Scale
from app.domain.jobs.request import DetectIn
from app.domain.results.comparison import figures_of
from app.domain.results.contract import Results
from app.domain.results.noise import (
    PUBLISHED,
    KnownNoise,
    Variances,
    assumed,
    differences,
    variance_of,
    variances,
)
from app.instruments.published import published_cells
from app.services.errors import NotFoundError
from app.services.jobs.view import find_job
from app.services.results.baselines import ATOMIC, BaselineFilter, baselines
from app.services.results.read import ResultsReader

PUBLISHED_WIDTHS = (1, Scale().width)
MODELS = 6
"""Models of a job that are looked at."""
ASSUMED, OF_PAPER, OF_JOB = "assumed", "published", "from_job"


@dataclass(frozen=True, slots=True)
class NoiseReader:
    """What the noise is read from."""

    engine: AsyncEngine
    results: ResultsReader

    async def read(self, tenant: str, wanted: DetectIn, tasks: Collection[str], width: float) -> KnownNoise:
        """The noise of differences in these tasks.

        Args:
            tenant: Whose jobs.
            wanted: What shall be found.
            tasks: The planned job's.
            width: Of the metric's scale.

        Raises:
            InvalidJobError: If the job that shall tell it does not.
        """
        usual = assumed(wanted.metric, width, len(tasks))
        known = KnownNoise(usual, ASSUMED, ASSUMED)
        if width in PUBLISHED_WIDTHS:
            published = await asyncio.to_thread(_published, wanted.metric, frozenset(tasks))
            known = KnownNoise(published.noise(usual), OF_PAPER, ASSUMED)
        if wanted.from_job is None:
            return known
        results = await self._results(tenant, wanted.from_job)
        found = await asyncio.to_thread(_of_job, results, wanted.metric, tasks)
        if found is None:
            raise _refused(f"has no two models with {wanted.metric} of the same personas in these tasks")
        return KnownNoise(
            found.noise(known.noise),
            known.personas if found.personas is None else OF_JOB,
            known.wordings if found.wordings is None else OF_JOB,
        )

    async def _results(self, tenant: str, job_id: str) -> Results:
        try:
            job = await find_job(self.engine, tenant, job_id)
        except NotFoundError:
            raise _refused("no job of this id") from None
        if not job.status.is_terminal:
            raise _refused(f"is {job.status}; only a finished job can be used")
        return await self.results.read_model(job)


def _refused(message: str) -> InvalidJobError:
    return InvalidJobError([FieldError("/detect/from_job", message)])


@lru_cache(32)
def _published(metric: str, tasks: frozenset[str]) -> Variances:
    """Of all pairs of the paper's models."""
    found = baselines(BaselineFilter(source=ATOMIC))
    figures = [figures_of(found, model) for model in sorted({cell.model for cell in published_cells()})]
    pairs = [differences(metric, tasks, a, b) for a, b in combinations(figures, 2)]
    return replace(variances(pairs, [None] * len(pairs)), size=PUBLISHED)


def _of_job(results: Results, metric: str, tasks: Collection[str]) -> Variances | None:
    """Of pairs of a job's models; ``None`` where none have the metric at the same places."""
    models = dict.fromkeys(cell.model for cell in results.cells)
    figures = {model: figures_of(results, model) for model in islice(models, MODELS)}
    pairs = {
        pair: differences(metric, tasks, *map(figures.__getitem__, pair)) for pair in combinations(figures, 2)
    }
    usable = {pair: cells for pair, cells in pairs.items() if cells}
    if not usable:
        return None
    over_runs = {model: _over_runs(results, model, metric, tasks) for model in figures}
    return variances(list(usable.values()), [_sum(over_runs[a], over_runs[b]) for a, b in usable])


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _over_runs(results: Results, model: str, metric: str, tasks: Collection[str]) -> float | None:
    """The variance of a model's mean over its runs; ``None`` where a total does not tell it."""
    totals = [
        total.metrics[metric]
        for total in results.totals
        if total.by == ["model", "task"] and total.model == model and total.task in tasks
    ]
    known = [each for each in totals if each.value is not None]
    cells = sum(each.n for each in known)
    parts = [
        None if each.ci95_runs is None else variance_of(metric, each.value or 0.0, each.ci95_runs)
        for each in known
    ]
    squares = [
        (each.n / cells) ** 2 * part for each, part in zip(known, parts, strict=True) if part is not None
    ]
    return sum(squares) if len(squares) == len(known) else None
