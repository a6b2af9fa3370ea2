"""Validates annotations against the job that they belong to."""

import re
from collections.abc import Mapping
from typing import Literal

from app.db.labels.annotations import KnownResponse
from app.domain.errors import FieldError
from app.domain.instruments.dimension import Scale
from app.domain.jobs.plan import AtomicCell, Cell, GymCell
from app.domain.labels.annotation import Annotation, Answer, Place
from app.domain.labels.annotation_file import AnnotationDraft
from app.domain.personagym.task import GRADE_SCALE
from app.services.job_context import JobContext

ANNOTATOR = re.compile(r"\w[\w .@'-]{0,99}")
"""Names that a spreadsheet takes for no formula."""
_RESPONSE = re.compile(r"resp_([0-9a-hjkmnp-tv-z]{26})-(\d{1,9})-(\d{1,9})-(\d{1,9})")

Known = Mapping[tuple[int, int, int], KnownResponse]


class AnnotationError(Exception):
    """An annotation can't be accepted.

    Attributes:
        field: What is wrong with which of its fields.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.field = FieldError(pointer, message)


def job_of(draft: AnnotationDraft) -> str:
    """The id of the job that an annotation is about.

    Raises:
        AnnotationError: If it names no response, or responses of two jobs.
    """
    job_id = _job_of(draft.response, f"{draft.pointer}/response")
    pointer = f"{draft.pointer}/other_response"
    if draft.other_response is not None and _job_of(draft.other_response, pointer) != job_id:
        raise AnnotationError(pointer, "belongs to another job")
    return job_id


def _job_of(response: str, pointer: str) -> str:
    found = _RESPONSE.fullmatch(response)
    if found is None:
        raise AnnotationError(pointer, "must be a response's id, as listed by /v1/jobs/{id}/responses")
    return f"job_{found[1]}"


def place_of(response: str, unit: int | None) -> Place:
    """The place that a response's id and a sentence's index name; the id has been checked by :func:`job_of`."""
    found = _RESPONSE.fullmatch(response)
    if found is None:
        raise ValueError(response)
    return Place(int(found[2]), int(found[3]), int(found[4]), unit)


def checked(draft: AnnotationDraft, context: JobContext, known: Known) -> Annotation:
    """The annotation, if all of it fits the job; a pair's sentences are put in order.

    Args:
        draft: What was sent; its ids have been checked by :func:`job_of`.
        context: The job's.
        known: Those of the named responses that there are.

    Raises:
        AnnotationError: If something does not fit.
    """
    at = draft.pointer
    _check_annotator(draft)
    place = place_of(draft.response, draft.unit)
    cell = _cell(place, context, known, at, "")
    if draft.other_response is None:
        return _scored(draft, place, cell)
    other = place_of(draft.other_response, draft.other_unit)
    return _paired(draft, place, other, cell, _cell(other, context, known, at, "other_")).ordered()


def flagged(
    draft: AnnotationDraft, context: JobContext, known: Known
) -> tuple[str | None, int | Literal["not_applicable"] | None]:
    """The dimension and the score of a flag, if all of it fits the job; as :func:`checked`, but it need not have a score.

    Raises:
        AnnotationError: If something does not fit.
    """
    _check_annotator(draft)
    place = place_of(draft.response, draft.unit)
    cell = _cell(place, context, known, draft.pointer, "")
    if draft.score is not None:
        said = _scored(draft, place, cell)
        return said.dimension, "not_applicable" if said.answer is Answer.NOT_APPLICABLE else said.score
    return None if draft.dimension is None else _dimension(draft, cell, place), None


def _check_annotator(draft: AnnotationDraft) -> None:
    if ANNOTATOR.fullmatch(draft.annotator) is None:
        raise AnnotationError(
            f"{draft.pointer}/annotator",
            "must begin with a letter or digit; after that, spaces and _ . @ ' - are allowed too",
        )


def _cell(place: Place, context: JobContext, known: Known, at: str, prefix: str) -> Cell:
    """The cell of a response that can be annotated, or of a sentence of it."""
    found = known.get(place.response)
    if found is None:
        raise AnnotationError(f"{at}/{prefix}response", "response not found")
    if found.status == "failed":
        raise AnnotationError(f"{at}/{prefix}response", "the response has no text: its call failed")
    if place.unit is not None and not 0 <= place.unit < found.units:
        raise AnnotationError(
            f"{at}/{prefix}unit", f"the response has {found.units} sentences, counted from 0"
        )
    cell = context.cell(place.cell)
    if cell.control:
        raise AnnotationError(
            f"{at}/{prefix}response", "belongs to the control arm, which people do not judge"
        )
    return cell


def dimensions_of(cell: Cell, item: int) -> tuple[str, ...]:
    """The dimensions on which a response to an item is judged."""
    if isinstance(cell, AtomicCell):
        return cell.items[item].dimensions
    return tuple(dimension.id for dimension in cell.dimensions)


def _scored(draft: AnnotationDraft, place: Place, cell: Cell) -> Annotation:
    at = draft.pointer
    for name in ("other_unit", "preferred"):
        if getattr(draft, name) is not None:
            raise AnnotationError(f"{at}/{name}", "only allowed for a pair: other_response is missing")
    if draft.score is None:
        raise AnnotationError(f"{at}/score", "is required")
    rubric = isinstance(cell, GymCell) and place.unit is None and draft.dimension is None
    dimension = None if rubric else _dimension(draft, cell, place)
    if draft.score == Answer.NOT_APPLICABLE:
        if rubric:
            raise AnnotationError(f"{at}/score", "not_applicable is not an answer to a rubric")
        return Annotation(draft.annotator, dimension, place, None, Answer.NOT_APPLICABLE, None)
    scale = GRADE_SCALE if dimension is None else _scale(cell, dimension)
    if not isinstance(draft.score, int) or not scale.minimum <= draft.score <= scale.maximum:
        otherwise = "" if rubric else ", or be not_applicable"
        raise AnnotationError(
            f"{at}/score", f"must lie between {scale.minimum} and {scale.maximum}{otherwise}"
        )
    return Annotation(draft.annotator, dimension, place, None, Answer.SCORED, draft.score)


def _paired(draft: AnnotationDraft, place: Place, other: Place, cell: Cell, beside: Cell) -> Annotation:
    at = draft.pointer
    if draft.score is not None:
        raise AnnotationError(f"{at}/score", "not allowed for a pair: use preferred")
    if draft.preferred is None:
        raise AnnotationError(f"{at}/preferred", "is required: first, second or equal")
    for name, unit in (("unit", place.unit), ("other_unit", other.unit)):
        if unit is None:
            raise AnnotationError(f"{at}/{name}", "is required: a pair consists of sentences")
    if place == other:
        raise AnnotationError(f"{at}/other_unit", "must be another sentence")
    dimension = _dimension(draft, cell, place)
    if dimension not in dimensions_of(beside, other.item):
        raise AnnotationError(f"{at}/other_response", f"its sentences are not judged on {dimension!r}")
    return Annotation(draft.annotator, dimension, place, other, draft.preferred, None)


def _dimension(draft: AnnotationDraft, cell: Cell, place: Place) -> str:
    there = dimensions_of(cell, place.item)
    at = f"{draft.pointer}/dimension"
    if draft.dimension is None:
        if len(there) == 1:
            return there[0]
        raise AnnotationError(
            at, f"is missing: one of {', '.join(there)}" if there else "no sentence is judged"
        )
    if draft.dimension not in there:
        raise AnnotationError(at, f"the response is judged on {', '.join(there) or 'none'}")
    return draft.dimension


def _scale(cell: Cell, dimension: str) -> Scale:
    return next(each.scale for each in cell.dimensions if each.id == dimension)
