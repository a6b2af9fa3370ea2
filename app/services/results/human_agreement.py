"""Agreement between annotators and judges, for results."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations
from app.db.labels import rounds as labelling
from app.db.labels.rounds import RoundRow
from app.db.results import response_pages
from app.db.results.response_pages import Judgements, Position
from app.domain.jobs.plan import GymCell
from app.domain.judging.verdict import VerdictStatus
from app.domain.labels.agreement import Sampling, Stratum, Subject, annotation_agreement
from app.domain.labels.annotation import ROWS_AT_ONCE, Annotation, Kind, Place
from app.domain.labels.human_agreement import HumanAgreement, HumanStudy, PublishedAgreement
from app.domain.labels.human_study import RatedCell, Study
from app.instruments.published import published_correlations
from app.services.job_context import JobContext, JobContexts
from app.services.results.label_memory import LabelMemory

REMEMBERED_JOBS = 64
RESPONSES_AT_ONCE = 100
"""Of a query; with what several judges say of their sentences they hold up the event loop for some milliseconds."""

_T = TypeVar("_T")
Scores = dict[tuple[str | None, Place], float]
Declined = set[tuple[str | None, Place]]


class _Labels(NamedTuple):
    """What people and judges said of a job.

    Attributes:
        context: The job's.
        annotations: All of them.
        judges: What each judge gave, by label.
        declined: The sentences that each judge found not applicable, by label.
        rounds: All of them.
    """

    context: JobContext
    annotations: Sequence[Annotation]
    judges: Mapping[str, Scores]
    declined: Mapping[str, Declined]
    rounds: Sequence[RoundRow]


class HumanAgreementReader:
    """One a process; remembers what it computed."""

    def __init__(self, engine: AsyncEngine, contexts: JobContexts) -> None:
        self._engine = engine
        self._contexts = contexts
        self._agreements: LabelMemory[list[HumanAgreement]] = LabelMemory(engine, REMEMBERED_JOBS)
        self._studies: LabelMemory[HumanStudy] = LabelMemory(engine, REMEMBERED_JOBS)

    async def read(self, job: JobRow) -> list[HumanAgreement] | None:
        """The agreement, for all who ask and none to change; ``None`` where nobody has annotated."""
        return await self._agreements.read([job], lambda: self._computed(job, _agreement))

    async def read_study(self, job: JobRow) -> HumanStudy:
        """The agreement by model and task, and among the annotators; for all who ask and none to change."""
        found = await self._studies.read([job], lambda: self._computed(job, _study))
        return found or HumanStudy(job=job.id, among_annotators=[], data=[], published=[])

    async def _computed(self, job: JobRow, compute: Callable[[str, _Labels], _T]) -> _T:
        return await asyncio.to_thread(compute, job.id, await self._labels(job))

    async def _labels(self, job: JobRow) -> _Labels:
        context = await self._contexts.get(job.tenant, job.id)
        found: list[Annotation] = []
        async with self._engine.connect() as connection:
            rounds = await labelling.rounds_of_job(connection, job.tenant, job.id)
            after = 0
            while page := await annotations.read_page(
                connection, job.tenant, job_id=job.id, annotator=None, after=after, limit=ROWS_AT_ONCE
            ):
                found += [each.annotation for each in page]
                after = page[-1].id
            wanted = sorted({place.response for each in found for place in (each.place, each.other) if place})
            judged: dict[Position, Judgements] = {}
            for start in range(0, len(wanted), RESPONSES_AT_ONCE):
                part = wanted[start : start + RESPONSES_AT_ONCE]
                judged |= await response_pages.judgements_of(
                    connection, job.tenant, job.id, part, graded=context.spec.gym is not None
                )
        judges, declined = await asyncio.to_thread(_judges, context, judged)
        return _Labels(context, found, judges, declined, rounds)


def _judges(
    context: JobContext, judged: Mapping[Position, Judgements]
) -> tuple[dict[str, Scores], dict[str, Declined]]:
    """Return each judge's scores, and what it found not applicable. CPU only."""
    labels = [judge.label for judge in context.spec.judges]
    scores: list[Scores] = [{} for _ in labels]
    declined: dict[str, Declined] = {label: set() for label in labels}
    for position, judgements in judged.items():
        _add_scores(scores, context, position, judgements)
        for unit, (trait, judge, status, *_) in zip(judgements.units, judgements.said, strict=True):
            if status == VerdictStatus.NOT_APPLICABLE:
                dimension = context.cells[position[0]].dimensions[trait].id
                declined[labels[judge]].add((dimension, Place(*position, unit)))
    return dict(zip(labels, scores, strict=True)), declined


def _agreement(_: str, labels: _Labels) -> list[HumanAgreement]:
    """CPU only."""
    context = labels.context
    return annotation_agreement(
        labels.annotations,
        {cell.ordinal: cell.task.id for cell in context.cells},
        labels.judges,
        context.spec.seed,
        _sampling(labels.rounds),
        labels.declined,
    )


def _study(job_id: str, labels: _Labels) -> HumanStudy:
    """CPU only."""
    context = labels.context
    study = Study(
        labels.annotations,
        [
            RatedCell(
                context.spec.models[cell.model].label, cell.person, cell.task.id, isinstance(cell, GymCell)
            )
            for cell in context.cells
        ],
        labels.judges,
        context.spec.seed,
    )
    data = study.agreement()
    graded = any(each.kind == "responses" and each.dimension is None for each in data)
    published = [PublishedAgreement(**each._asdict()) for each in published_correlations() if graded]
    return HumanStudy(job=job_id, among_annotators=study.among_annotators(), data=data, published=published)


def _sampling(rounds: Sequence[RoundRow]) -> Sampling:
    """What the rounds drew; their things stand in the order of their strata."""
    drawn: dict[Subject, Stratum] = {}
    sizes: dict[tuple[Kind, str | None], dict[Stratum, int]] = defaultdict(dict)
    for row in rounds:
        found = [(each["task"], tuple(each["scores"]), each.get("model", "")) for each in row.strata]
        dimension = row.dimension or None
        available = [each["available"] for each in row.strata]
        sizes[Kind(row.kind), dimension] |= dict(zip(found, available, strict=True))
        strata = [
            stratum for stratum, each in zip(found, row.strata, strict=True) for _ in range(each["drawn"])
        ]
        for stratum, (one, *other) in zip(strata, row.things, strict=True):
            drawn[dimension, Place(*one), Place(*other[0]) if other else None] = stratum
    return Sampling(drawn, sizes)


def _add_scores(
    scores: Sequence[Scores], context: JobContext, position: Position, judgements: Judgements
) -> None:
    """What each judge gave a response: its sentences, their mean, and its grade."""
    dimensions = context.cells[position[0]].dimensions
    of_response: dict[tuple[int, str], list[int]] = defaultdict(list)
    for unit, (trait, judge, _, score, *_) in zip(judgements.units, judgements.said, strict=True):
        if score is not None:
            dimension = dimensions[trait].id
            scores[judge][dimension, Place(*position, unit)] = float(score)
            of_response[judge, dimension].append(score)
    for (judge, dimension), given in of_response.items():
        scores[judge][dimension, Place(*position, None)] = sum(given) / len(given)
    for grade in judgements.grades:
        if grade.score is not None:
            scores[grade.judge][None, Place(*position, None)] = float(grade.score)
