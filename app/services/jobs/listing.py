"""Lists of jobs with what came out and what it cost, and the columns by which they are ordered."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import listing
from app.db.jobs.jobs import JobRow
from app.db.jobs.listing import Key, Taken
from app.domain.jobs.contract import ListedJob
from app.domain.jobs.listing import JobFilter, JobSort
from app.domain.providers.usage import Cost
from app.domain.results.model_scores import ModelScore
from app.domain.results.warnings import ResultWarning
from app.services.jobs.view import shown


class Entry(NamedTuple):
    """A job of a list, with what it is ordered by there."""

    job: ListedJob
    key: Key


async def list_jobs(
    engine: AsyncEngine,
    tenant: str,
    wanted: JobFilter,
    *,
    limit: int,
    sort: JobSort = "-created",
    after: tuple[Key, str] | None = None,
) -> list[Entry]:
    """A tenant's jobs; see :func:`app.db.jobs.listing.list_jobs`. What running ones cost is that of now."""
    async with engine.connect() as connection:
        found = await listing.list_jobs(connection, tenant, wanted, limit=limit, sort=sort, after=after)
        going = [each.job.id for each in found if not _is_listed(each.job)]
        taken = await listing.taken(connection, tenant, going) if going else {}
    return [Entry(_show(each.job, taken), each.key) for each in found]


def _is_listed(job: JobRow) -> bool:
    """Whether what the job cost is kept with it."""
    return job.status.is_terminal and job.scores is not None


def _show(job: JobRow, taken: dict[str, Taken]) -> ListedJob:
    kept = Taken(job.usd, job.unpriced_calls or 0)
    usd, unpriced = kept if _is_listed(job) else taken.get(job.id, Taken(0, 0))
    return ListedJob(**shown(job), cost=Cost(usd=usd, unpriced_calls=unpriced))


async def note_results(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    scores: Sequence[ModelScore],
    warnings: Sequence[ResultWarning],
) -> None:
    """Store what lists and views show of the results of a job that has ended, or is about to."""
    await listing.note_figures(
        connection,
        tenant,
        job_id,
        [score.model_dump() for score in scores],
        [warning.model_dump(mode="json") for warning in warnings],
    )
