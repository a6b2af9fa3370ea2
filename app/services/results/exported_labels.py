"""What people said of a job, for its exports; nobody's name."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations
from app.db.labels.annotations import StoredAnnotation
from app.domain.judging.judged_response import JudgedResponse
from app.domain.labels.annotation import ROWS_AT_ONCE
from app.services.identifiers import response_id, response_place

PeopleScores = Mapping[tuple[str, int | None, str | None], tuple[float, int]]


async def is_labelled(engine: AsyncEngine, job: JobRow) -> bool:
    """Whether anybody said anything of a job."""
    async with engine.connect() as connection:
        count, _, _ = await annotations.state(connection, job.tenant, job.id)
    return count > 0


async def label_records(engine: AsyncEngine, job: JobRow) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
    """All answers, some at a time, in the order in which they were first given; annotators are numbers in that order."""
    numbers: dict[str, int] = {}
    after = 0
    while True:
        async with engine.connect() as connection:
            page = await annotations.read_page(
                connection, job.tenant, job_id=job.id, annotator=None, after=after, limit=ROWS_AT_ONCE
            )
        if not page:
            return
        yield [_record(each, numbers.setdefault(each.annotation.annotator, len(numbers))) for each in page]
        after = page[-1].id


def _record(stored: StoredAnnotation, annotator: int) -> Mapping[str, Any]:
    said = stored.annotation
    found = {
        "annotator": annotator,
        "response_id": response_id(stored.job_id, *said.place.response),
        "unit": said.place.unit,
        "dimension": said.dimension,
        "answer": said.answer.value,
        "score": said.score,
    }
    if said.other is None:
        return found
    other = response_id(stored.job_id, *said.other.response)
    return found | {"other_response_id": other, "other_unit": said.other.unit}


async def people_scores(engine: AsyncEngine, job: JobRow, page: Sequence[JudgedResponse]) -> PeopleScores:
    """What people gave these responses and their sentences: response, sentence and dimension; the mean, and of how many."""
    places = {place: each.id for each in page if (place := response_place(job.id, each.id)) is not None}
    async with engine.connect() as connection:
        found = await annotations.people_scores(connection, job.tenant, job.id, list(places))
    return {
        (places[place], each.unit, each.dimension): (each.mean, each.answers)
        for place, scores in found.items()
        for each in scores
    }
