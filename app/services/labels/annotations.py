"""Stores and lists annotations."""

import asyncio
import csv
import io
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.labels import annotations
from app.db.labels.annotations import KnownResponse, PeopleScore, StoredAnnotation
from app.domain.errors import FieldError, InvalidJobError
from app.domain.labels import contract
from app.domain.labels.annotation import ROWS_AT_ONCE, Annotation, Answer, Kind
from app.domain.labels.annotation_file import COLUMNS, AnnotationDraft
from app.domain.labels.contract import KeptAnnotations
from app.services.errors import NotFoundError
from app.services.identifiers import response_id
from app.services.job_context import JobContext, JobContexts
from app.services.labels.check import AnnotationError, checked, job_of, place_of

Response = tuple[int, int, int]
"""Cell, run and item."""


@dataclass(frozen=True, slots=True)
class AnnotationFilter:
    """Whose annotations of which job; ``None`` means all."""

    job_id: str | None = None
    annotator: str | None = None


async def keep_annotations(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, drafts: Sequence[AnnotationDraft]
) -> KeptAnnotations:
    """Keeps annotations, all or none. A changed answer of the same annotator replaces the earlier one.

    Raises:
        InvalidJobError: If some don't fit their job, with every reason.
    """
    by_job = await asyncio.to_thread(_by_job, drafts)
    found = {
        job_id: await _checked(engine, contexts, tenant, job_id, mine) for job_id, mine in by_job.items()
    }
    counts: Counter[str] = Counter()
    try:
        async with engine.begin() as connection:
            for job_id, mine in sorted(found.items()):
                counts += await annotations.keep(connection, tenant, job_id, mine)
    except IntegrityError as error:
        raise NotFoundError("job not found") from error
    created, changed = counts["created"], counts["changed"]
    unchanged = len(drafts) - created - changed
    return KeptAnnotations(created=created, changed=changed, unchanged=unchanged)


def _by_job(drafts: Sequence[AnnotationDraft]) -> dict[str, list[AnnotationDraft]]:
    """The drafts by the job that their responses belong to."""
    found: dict[str, list[AnnotationDraft]] = defaultdict(list)
    errors: list[FieldError] = []
    for draft in drafts:
        try:
            found[job_of(draft)].append(draft)
        except AnnotationError as error:
            errors.append(error.field)
    if errors:
        raise InvalidJobError(errors)
    return found


async def _checked(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, job_id: str, drafts: Sequence[AnnotationDraft]
) -> list[Annotation]:
    known: dict[Response, KnownResponse] = {}
    wanted = await asyncio.to_thread(_responses, drafts)
    async with engine.connect() as connection:
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            part = wanted[start : start + ROWS_AT_ONCE]
            known |= await annotations.known_responses(connection, tenant, job_id, part)
    if not known:
        raise InvalidJobError(
            [FieldError(f"{draft.pointer}/response", "response not found") for draft in drafts]
        )
    return await asyncio.to_thread(_all_checked, drafts, await contexts.get(tenant, job_id), known)


def _responses(drafts: Sequence[AnnotationDraft]) -> list[Response]:
    """The responses that are named, in order. CPU only."""
    named = {draft.response for draft in drafts} | {draft.other_response for draft in drafts}
    return sorted(place_of(each, None).response for each in named if each is not None)


def _all_checked(
    drafts: Sequence[AnnotationDraft], context: JobContext, known: Mapping[Response, KnownResponse]
) -> list[Annotation]:
    """CPU only."""
    found: list[Annotation] = []
    said: dict[tuple[object, ...], str] = {}
    errors: list[FieldError] = []
    for draft in drafts:
        try:
            annotation = checked(draft, context, known)
        except AnnotationError as error:
            errors.append(error.field)
            continue
        former = said.setdefault((annotation.annotator, *annotation.subject), draft.pointer)
        if former != draft.pointer:
            errors.append(FieldError(draft.pointer, f"of the same, by the same annotator, as {former}"))
        found.append(annotation)
    if errors:
        raise InvalidJobError(errors)
    return found


async def read_annotations(
    engine: AsyncEngine, tenant: str, wanted: AnnotationFilter, *, after: int, limit: int
) -> list[StoredAnnotation]:
    """A page of annotations, in the order in which they were first given."""
    async with engine.connect() as connection:
        return await annotations.read_page(
            connection,
            tenant,
            job_id=wanted.job_id,
            annotator=wanted.annotator,
            after=after,
            limit=limit,
        )


async def people_scores_of(
    engine: AsyncEngine, tenant: str, job_id: str, responses: Sequence[str]
) -> list[Sequence[PeopleScore]]:
    """What people gave each of a job's responses, named by id, and its sentences."""
    places = [place_of(each, None).response for each in responses]
    async with engine.connect() as connection:
        found = await annotations.people_scores(connection, tenant, job_id, places)
    return [found.get(place, ()) for place in places]


async def export_csv(engine: AsyncEngine, tenant: str, wanted: AnnotationFilter) -> AsyncGenerator[bytes]:
    """All annotations as CSV that can be imported again; no connection is held while the reader takes its time."""
    yield _lines([COLUMNS])
    after = 0
    while True:
        page = await read_annotations(engine, tenant, wanted, after=after, limit=ROWS_AT_ONCE)
        if page:
            shown = [show_annotation(each) for each in page]
            yield _lines([[getattr(each, name) for name in COLUMNS] for each in shown])
            after = page[-1].id
        if len(page) < ROWS_AT_ONCE:
            return


def _lines(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)  # what is missing is an empty field
    return text.getvalue().encode()


def show_annotation(stored: StoredAnnotation) -> contract.Annotation:
    """An annotation as it is shown."""
    each = stored.annotation
    other = each.other
    score: int | Literal["not_applicable"] | None = each.score
    if each.answer is Answer.NOT_APPLICABLE:
        score = "not_applicable"
    return contract.Annotation(
        job=stored.job_id,
        annotator=each.annotator,
        response=response_id(stored.job_id, *each.place.response),
        unit=each.place.unit,
        dimension=each.dimension,
        score=score,
        other_response=None if other is None else response_id(stored.job_id, *other.response),
        other_unit=None if other is None else other.unit,
        preferred=_PREFERRED.get(each.answer) if each.kind is Kind.PAIRS else None,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )


_PREFERRED: Mapping[Answer, Literal["first", "second", "equal"]] = {
    Answer.FIRST: "first",
    Answer.SECOND: "second",
    Answer.EQUAL: "equal",
}
