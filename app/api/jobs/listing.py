"""Parameters of lists of jobs, of the API and of the console."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import AfterValidator, BeforeValidator

from app.api.http import cursors
from app.api.http.dependencies import MetadataFilter, ServicesDep
from app.domain.contract import check_storable
from app.domain.jobs.listing import Archived, JobFilter, JobSort
from app.domain.jobs.status import JobStatus
from app.services.jobs.listing import Entry

_Part = Annotated[str, AfterValidator(check_storable)]
_KEYS: dict[str, type[datetime] | type[str] | type[float]] = {
    "created": datetime,
    "name": str,
    "cost": float,
    "score": float,
}

Sort = Annotated[
    JobSort,
    Query(
        description="`-` reverses the order. `score` is the best model's. Jobs that have no score or cost yet come first, or"
        " last with `-`."
    ),
]


async def _job_filter(
    services: ServicesDep,
    metadata: MetadataFilter,
    q: Annotated[
        _Part | None,
        Query(
            max_length=200,
            description="Only jobs whose name, ID, notes, tags or models contain this, in any case.",
        ),
    ] = None,
    tag: Annotated[
        list[_Part] | None, Query(max_length=20, description="Only jobs with all these tags. Repeatable.")
    ] = None,
    status: Annotated[JobStatus | None, Query(description="Only jobs with this status.")] = None,
    model: Annotated[
        _Part | None, Query(max_length=300, description="Only jobs with a model of this label.")
    ] = None,
    framework: Annotated[
        Literal["atomic", "personagym"] | None,
        BeforeValidator(lambda text: text or None),  # what a form sends of a choice that was left open
        Query(description="Only jobs with a task of this framework."),
    ] = None,
    name: Annotated[
        _Part | None,
        Query(max_length=200, description="Only jobs whose names contain this, in any case."),
    ] = None,
    archived: Annotated[
        Archived, Query(description="`true`: archived jobs only; `any`: all jobs.")
    ] = Archived.FALSE,
) -> JobFilter:
    tasks = {"atomic": services.instrument.tasks, "personagym": services.gym.tasks}
    return JobFilter(
        archived=archived,
        status=status,
        text=q or None,
        name=name,
        tags=tuple(filter(None, tag or ())),
        model=model,
        tasks=None if framework is None else tuple(tasks[framework]),
        metadata=metadata,
    )


JobFilterDep = Annotated[JobFilter, Depends(_job_filter)]


def place_in(sort: JobSort, after: str | None) -> tuple[datetime | str | float, str] | None:
    """Behind which job a page of a list in this order begins; ``None`` for the first page.

    Raises:
        ProblemError: If ``after`` is no cursor of such a list.
    """
    return None if after is None else cursors.key_and_id(after, _KEYS[sort.removeprefix("-")])


def cursor_of(entry: Entry) -> str:
    """The cursor behind a job of a list."""
    return cursors.of_key(entry.key, entry.job.id)
