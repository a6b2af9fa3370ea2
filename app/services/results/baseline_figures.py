"""Figures of baselines of one's own beside a job's."""

from app.db.jobs import named_baselines
from app.db.jobs.jobs import JobRow
from app.db.jobs.named_baselines import NamedBaselineRow
from app.domain.results.baseline_figures import MOST_BESIDE, BaselineFigures
from app.domain.results.contract import Results
from app.services.errors import NotFoundError
from app.services.jobs.view import find_job
from app.services.results.compare import Comparer
from app.services.results.gate import held_against


async def beside_job(sources: Comparer, job: JobRow) -> list[BaselineFigures]:
    """The tenant's baselines that other jobs are, with their figures: the last named ones, by name."""
    async with sources.engine.connect() as connection:
        there = [row for row, _ in await named_baselines.list_all(connection, job.tenant)]
    others = sorted((row for row in there if row.job_id != job.id), key=lambda row: row.created_at)
    read: dict[str, Results] = {}
    found = []
    for row in sorted(others[-MOST_BESIDE:], key=lambda row: row.name):
        try:
            found.append(await _figures(sources, job, row, read))
        except NotFoundError:
            continue  # it was a baseline no more, and deleted meanwhile
    return found


async def _figures(
    sources: Comparer, job: JobRow, row: NamedBaselineRow, read: dict[str, Results]
) -> BaselineFigures:
    told = await held_against(sources, job, row)
    if row.job_id not in read:
        its = await find_job(sources.engine, job.tenant, row.job_id)
        read[row.job_id] = await sources.results.read_model(its)
    results = read[row.job_id]
    scores = [total for total in results.persona_score_totals if total.model == row.model]
    return BaselineFigures(
        told,
        results.simulated,
        [cell for cell in results.cells if cell.model == row.model],
        scores[0] if scores else None,
    )
