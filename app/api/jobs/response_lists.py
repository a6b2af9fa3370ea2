"""A page of responses in any order, by the cursor that a client sends back: what the API and the console share."""

import math
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.dependencies import Services
from app.db.jobs.jobs import JobRow
from app.db.results.sorted_responses import Mark, Sort
from app.domain.contract import check_storable
from app.domain.judging.judged_response import JudgedResponse
from app.services.job_context import JobContext
from app.services.jobs.view import find_job
from app.services.results.responses import (
    MOST_VERDICTS,
    ResponseFilter,
    read_page,
    read_sorted_page,
)
from app.services.results.side_by_side import Source

SearchedText = Annotated[
    str | None,
    Query(
        max_length=200,
        description="Only those whose text contains this, in small letters or capitals. A page searches 70,000 texts, sorted all of them.",
    ),
    AfterValidator(lambda text: text if text is None else check_storable(text)),
]


async def read_list(
    services: Services,
    job: JobRow,
    context: JobContext,
    wanted: ResponseFilter,
    sort: Sort | None,
    *,
    after: str | None,
    limit: int,
    most_verdicts: int = MOST_VERDICTS,
) -> tuple[list[JudgedResponse], str | None]:
    """A page, and the cursor of the next one if there is one.

    Raises:
        ProblemError: If ``after`` is no cursor of this order.
    """
    if sort is None:
        place = None if after is None else cursors.position(after)
        found, following = await read_page(
            services.engine,
            job,
            context,
            wanted,
            after=place,
            limit=limit,
            most_verdicts=most_verdicts,
            figures=True,
        )
        return found, None if following is None else cursors.encoded(list(following))
    mark = None if after is None else Mark(*cursors.mark(after))
    found, until = await read_sorted_page(
        services.engine, job, context, wanted, sort, after=mark, limit=limit, most_verdicts=most_verdicts
    )
    if until is None:
        return found, None
    value = until.value if math.isfinite(until.value) else None
    return found, cursors.encoded([value, *until.place])


async def source_of(services: Services, tenant: str, job_id: str) -> Source:
    """A job to read responses from."""
    return Source(
        await find_job(services.engine, tenant, job_id), await services.contexts.get(tenant, job_id)
    )
