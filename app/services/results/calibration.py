"""A job's totals as people would give them, from the labels of its rounds."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations
from app.db.labels import rounds as labelling
from app.db.results import response_pages
from app.db.results.joint_scores import ResponseJointRow, joint_scores_of_responses
from app.db.results.response_pages import Judgements, Position
from app.domain.labels import contract
from app.domain.labels.annotation import ROWS_AT_ONCE, Annotation, Place
from app.domain.labels.calibration import (
    HALF_WIDTH,
    METRICS,
    NOT_CALIBRATED,
    PERSONA_SCORE,
    CalibratedFigure,
    Calibration,
    JudgedCell,
    JudgedSentences,
    LabelledSentence,
    over_dimensions,
)
from app.domain.labels.judge_errors import JudgedLabel, judge_errors
from app.domain.labels.rounds import NO_PILOT, LabellingKind, Pilot
from app.domain.metrics.interval import Ends, Interval
from app.domain.metrics.metric import INTERVALS, Metric
from app.domain.personagym.scores import Grade
from app.domain.results.calibrated_persona_scores import Answer as GradedAnswer
from app.domain.results.calibrated_persona_scores import GradeCalibration
from app.domain.results.contract import Results
from app.services.errors import WrongStateError
from app.services.job_context import JobContext, JobContexts
from app.services.results.compute import read_grades
from app.services.results.label_memory import LabelMemory
from app.services.results.rarefied_figures import ModelOfJob

RESPONSES_AT_ONCE = 100
REMEMBERED_JOBS = 16
"""Some hundred kB each, of a dozen models on five dimensions some MB."""
REMEMBERED_COMPARISONS = 64
TEXTS_ONLY = (
    "texts_only: the judges' own interval is not known, so this is told for these texts only (ci95_texts)"
)


class _Labels(NamedTuple):
    """What is known of one dimension.

    Attributes:
        dimension: Its id.
        traits: Which trait of each cell is about it, by the cell's ordinal.
        rows: All scored sentences.
        said: What people said of each sentence that a round drew.
        judged: What judges said of these sentences' responses.
    """

    dimension: str
    traits: Mapping[int, int]
    rows: Sequence[ResponseJointRow]
    said: Mapping[Place, Sequence[Annotation]]
    judged: Mapping[Position, Judgements]


class _JobLabels(NamedTuple):
    """What is known of a job.

    Attributes:
        sentences: By dimension.
        grades: The judges', where people graded a drawn answer.
        people: What people said of each of these.
    """

    sentences: Sequence[_Labels]
    grades: Sequence[Grade]
    people: Mapping[Place, Sequence[Annotation]]


class _Calibrations(NamedTuple):
    """What is computed of a job.

    Attributes:
        sentences: By dimension.
        grades: Of whole answers; ``None`` where people graded none that was drawn.
        dimensions: All of the job's.
    """

    sentences: Mapping[str, Calibration]
    grades: GradeCalibration | None
    dimensions: AbstractSet[str]


class _Made(NamedTuple):
    """What is computed of one dimension."""

    answer: contract.DimensionCalibration
    totals: Sequence[CalibratedFigure]
    differences: Sequence[CalibratedFigure]


class CalibrationReader:
    """One a process; remembers what it computed."""

    def __init__(
        self, engine: AsyncEngine, contexts: JobContexts, results: Callable[[JobRow], Awaitable[Results]]
    ) -> None:
        """Reads from there.

        Args:
            engine: Where the labels and scores are.
            contexts: Where the specifications are.
            results: Reads a job's results, for the judges' intervals.
        """
        self._engine = engine
        self._contexts = contexts
        self._results = results
        self._memory: LabelMemory[contract.JobCalibration] = LabelMemory(engine, REMEMBERED_JOBS)
        self._compared: LabelMemory[list[contract.CalibratedFigure]] = LabelMemory(
            engine, REMEMBERED_COMPARISONS
        )

    async def read(self, job: JobRow, half_width: float = HALF_WIDTH) -> contract.JobCalibration:
        """The calibration of every dimension of which a round's sentences are labelled, for all who ask and none to change.

        Args:
            job: The job.
            half_width: How narrow an interval labels are counted for.

        Raises:
            WrongStateError: If the job is not over.
        """
        if not job.status.is_terminal:
            raise WrongStateError(f"a job that is {job.status} has no labels yet", job.status)
        found = await self._memory.read([job], lambda: self._compute(job, half_width), wanted=half_width)
        return found or _unlabelled(job, half_width)

    async def differences(
        self, sides: Sequence[tuple[str, ModelOfJob]], without: Collection[str]
    ) -> list[contract.CalibratedFigure]:
        """Of each two of these models the first one's figures less the other's, over the cells that both have.

        Args:
            sides: Models of the same or of several jobs, each with what it is called; none where nobody has labelled one of the jobs.
            without: Personas that are left out.
        """
        jobs = {side.job.id: side for _, side in sides}

        async def compute() -> list[contract.CalibratedFigure]:
            made = {
                id_: await _calibrations(self._engine, side.job, side.context) for id_, side in jobs.items()
            }
            found = []
            for one, other in combinations(
                [(name, made[side.job.id], side.model) for name, side in sides], 2
            ):
                found += await asyncio.to_thread(_differences, one, other, without)
            return found

        of = (*((name, side.job.id, side.model) for name, side in sides), *sorted(without))
        return await self._compared.read([side.job for side in jobs.values()], compute, of=of) or []

    async def models(self, job: JobRow) -> list[dict[str, Any]]:
        """Each model's figures as pages show them, those of all dimensions before those of each; none while the job runs."""
        if not job.status.is_terminal:
            return []
        found = await self.read(job)
        of_all = [
            each
            for each in found.totals
            if each.judged is not None and (len(found.data) > 1 or each.metric == PERSONA_SCORE)
        ]
        parts = [(None, of_all), *((each.dimension, each.totals) for each in found.data)]
        return [
            {"dimension": dimension, "model": each.keys["model"], "half_width": found.half_width}
            | each.model_dump(mode="json")
            for dimension, figures in parts
            for each in figures
            if each.keys.keys() == {"model"}
        ]

    async def _compute(self, job: JobRow, half_width: float) -> contract.JobCalibration:
        context = await self._contexts.get(job.tenant, job.id)
        found = await _all_labels(self._engine, job, context)
        if not found.sentences and not found.people:
            return _unlabelled(job, half_width)
        shown = _Shown(half_width, _judged(await self._results(job)))
        made = [await asyncio.to_thread(_calibration, context, each, shown) for each in found.sentences]
        unlabelled = sorted(_dimensions(context) - {each.dimension for each in found.sentences})
        grades = await asyncio.to_thread(_by_grades, context, found)
        totals, differences = (
            [shown.figure(each) for each in [*over_dimensions(figures, unlabelled), *graded]]
            for figures, graded in zip(
                ([one.totals for one in made], [one.differences for one in made]),
                ([], []) if grades is None else (grades.totals(), grades.differences()),
                strict=True,
            )
        )
        return contract.JobCalibration(
            job=job.id,
            half_width=half_width,
            totals=totals,
            differences=differences,
            not_calibrated=dict(NOT_CALIBRATED),
            data=[one.answer for one in made],
        )


def _unlabelled(job: JobRow, half_width: float) -> contract.JobCalibration:
    return contract.JobCalibration(
        job=job.id, half_width=half_width, totals=[], differences=[], not_calibrated={}, data=[]
    )


async def _calibrations(engine: AsyncEngine, job: JobRow, context: JobContext) -> _Calibrations:
    labels = await _all_labels(engine, job, context)
    sentences = {
        each.dimension: (await asyncio.to_thread(_computed, context, each))[2] for each in labels.sentences
    }
    return _Calibrations(
        sentences, await asyncio.to_thread(_by_grades, context, labels), _dimensions(context)
    )


def _differences(
    first: tuple[str, _Calibrations, str], second: tuple[str, _Calibrations, str], without: Collection[str]
) -> list[contract.CalibratedFigure]:
    """The one model's figures less the other's; CPU only."""
    (name, one, model), (other_name, other, other_model) = first, second
    labelled = sorted(one.sentences.keys() & other.sentences.keys())
    unlabelled = sorted((one.dimensions & other.dimensions) - {*labelled})
    found = over_dimensions(
        [
            one.sentences[each].difference(model, other.sentences[each], other_model, without)
            for each in labelled
        ],
        unlabelled,
    )
    if one.grades is not None and other.grades is not None:
        found += one.grades.difference(model, other.grades, other_model, without)
    shown = _Shown(HALF_WIDTH, {})
    named = {"a": name, "b": other_name}
    return [shown.figure(replace(each, keys={**each.keys, **named})) for each in found]


async def read_pilot(engine: AsyncEngine, contexts: JobContexts, job: JobRow, dimension: str | None) -> Pilot:
    """What labels of earlier rounds say of a dimension; ``None`` for the job's only one."""
    context = await contexts.get(job.tenant, job.id)
    async with engine.connect() as connection:
        drawn = await _drawn_answers(connection, job)
        wanted = dimension or next(filter(None, drawn), None)
        if wanted is None or wanted not in drawn:
            return NO_PILOT
        labels = await _labels(connection, job, context, wanted, drawn[wanted])
    return await asyncio.to_thread(_pilot, context, labels)


def _dimensions(context: JobContext) -> set[str]:
    return {each.id for cell in context.cells for each in cell.dimensions}


async def _all_labels(engine: AsyncEngine, job: JobRow, context: JobContext) -> _JobLabels:
    async with engine.connect() as connection:
        drawn = await _drawn_answers(connection, job)
        people = drawn.pop(None, {})
        return _JobLabels(
            [
                await _labels(connection, job, context, dimension, said)
                for dimension, said in sorted(drawn.items())
                if dimension is not None
            ],
            await read_grades(connection, job, context) if people else [],
            people,
        )


def _by_grades(context: JobContext, labels: _JobLabels) -> GradeCalibration | None:
    """CPU only."""
    gym = context.spec.gym
    if gym is None or not labels.people:
        return None
    people = {}
    for place, said in labels.people.items():
        cell = context.cells[place.cell]
        model = context.spec.models[cell.model].label
        answer = GradedAnswer(model, cell.persona.id, cell.task.id, str(place.item), place.run)
        people[answer] = _people(said)
    return GradeCalibration(labels.grades, [task.id for task in gym.tasks], people)


async def _drawn_answers(
    connection: AsyncConnection, job: JobRow
) -> dict[str | None, dict[Place, list[Annotation]]]:
    """What people said of each sentence, by dimension, and of each answer, by ``None``, that a round drew.

    What nobody drew by chance stands for nothing.
    """
    drawn = {
        (row.dimension or None, Place(*thing[0]))
        for row in await labelling.rounds_of_job(connection, job.tenant, job.id)
        if row.kind != LabellingKind.PAIRS
        for thing in row.things
    }
    found: dict[str | None, dict[Place, list[Annotation]]] = defaultdict(lambda: defaultdict(list))
    after = 0
    while drawn and (
        page := await annotations.read_page(
            connection, job.tenant, job_id=job.id, annotator=None, after=after, limit=ROWS_AT_ONCE
        )
    ):
        for each in (stored.annotation for stored in page):
            if each.other is None and (each.dimension, each.place) in drawn:
                found[each.dimension][each.place].append(each)
        after = page[-1].id
    return found


async def _labels(
    connection: AsyncConnection,
    job: JobRow,
    context: JobContext,
    dimension: str,
    said: Mapping[Place, Sequence[Annotation]],
) -> _Labels:
    traits = {
        cell.ordinal: trait
        for cell in context.cells
        for trait, each in enumerate(cell.dimensions)
        if each.id == dimension
    }
    rows = await joint_scores_of_responses(connection, job.tenant, job.id, list(traits.items()))
    responses = sorted({place.response for place in said})
    judged: dict[Position, Judgements] = {}
    for start in range(0, len(responses), RESPONSES_AT_ONCE):
        part = responses[start : start + RESPONSES_AT_ONCE]
        judged |= await response_pages.judgements_of(connection, job.tenant, job.id, part, graded=False)
    return _Labels(dimension, traits, rows, said, judged)


def _computed(
    context: JobContext, labels: _Labels
) -> tuple[list[JudgedCell], list[JudgedSentences], Calibration]:
    """The dimension's cells and sentences, and what labels say of them; CPU only."""
    ordinals = sorted(labels.traits)
    index = {ordinal: n for n, ordinal in enumerate(ordinals)}
    cells = [_cell(context, ordinal, labels.traits[ordinal]) for ordinal in ordinals]
    judged = [
        JudgedSentences(index[row.cell], row.run, row.item, _pairs(row.scores), row.units)
        for row in labels.rows
    ]
    scored = _scores(labels)
    labelled = [
        LabelledSentence(index[place.cell], place.run, place.item, scored[place], _people(said))
        for place, said in sorted(labels.said.items())
        if place in scored  # the job was retried
    ]
    scale = context.cells[ordinals[0]].dimensions[labels.traits[ordinals[0]]].scale
    return cells, judged, Calibration(cells, scale, judged, labelled)


def _pilot(context: JobContext, labels: _Labels) -> Pilot:
    return _computed(context, labels)[2].pilot()


def _calibration(context: JobContext, labels: _Labels, show: "_Shown") -> _Made:
    """CPU only."""
    cells, judged, made = _computed(context, labels)
    scale = made.scale
    rogan_gladen = made.rogan_gladen(context.spec.seed)
    totals, differences = made.totals(), made.differences()
    shown = [show.figure(each, dimension=labels.dimension) for each in totals]
    for figure in shown:
        if figure.metric == "acc_atom" and list(figure.keys) == ["model"]:
            figure.rogan_gladen = rogan_gladen[figure.keys["model"]]
    answer = contract.DimensionCalibration(
        dimension=labels.dimension,
        labels=len(made.labelled()),
        totals=shown,
        differences=[show.figure(each) for each in differences],
        judge_errors=_errors(context, cells, made, judged, scale.minimum, scale.maximum),
    )
    return _Made(answer, totals, differences)


def _cell(context: JobContext, ordinal: int, trait: int) -> JudgedCell:
    cell = context.cells[ordinal]
    return JudgedCell(
        model=context.spec.models[cell.model].label,
        persona=cell.persona.id,
        task=cell.task.id,
        level=cell.persona.traits[trait].level,
    )


def _scores(labels: _Labels) -> dict[Place, tuple[tuple[int, int], ...]]:
    """What each labelled sentence's judges gave it."""
    found: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for position, judgements in labels.judged.items():
        for unit, (trait, judge, _, score, *_) in zip(judgements.units, judgements.said, strict=True):
            if score is not None and trait == labels.traits[position[0]]:
                found[Place(*position, unit)].append((judge, score))
    return {place: tuple(sorted(scores)) for place, scores in found.items()}


def _pairs(scores: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Pairs that the database gives as lists."""
    return tuple((judge, score) for judge, score in scores)


def _people(said: Sequence[Annotation]) -> tuple[int, ...]:
    return tuple(each.score for each in said if each.score is not None)


@dataclass(frozen=True, slots=True)
class _Shown:
    """How figures are shown.

    Attributes:
        half_width: How narrow an interval labels are counted for.
        judged: The results' totals by their keys and metric.
    """

    half_width: float
    judged: Mapping[tuple[frozenset[tuple[str, str]], str], Metric]

    def figure(self, each: CalibratedFigure, **keys: str) -> contract.CalibratedFigure:
        """A figure, beside what the results have for its keys and these."""
        texts = each.texts()
        calibrated = texts.model_copy(update={"ci95": None, "ci95_reason": None})
        known = self.judged.get((frozenset({**each.keys, **keys}.items()), each.metric))
        judged = Metric.missing(TEXTS_ONLY) if known is None else known
        calibrated = calibrated.within(
            **{
                name: each.beyond(
                    _interval(getattr(judged, name), getattr(judged, f"{name}_reason"), judged.reason)
                )
                for name in INTERVALS
            }
        )
        needed = (None, None) if each.found is None else each.found.labels_for(self.half_width, each.bounds)
        return contract.CalibratedFigure(
            keys=dict(each.keys),
            metric=each.metric,
            judged=None if each.found is None else each.found.judged,
            calibrated=calibrated,
            ci95_texts=texts.ci95,
            ci95_texts_reason=texts.reason or texts.ci95_reason,
            labels_needed=needed[0],
            labels_needed_at_best=needed[1],
        )


def _judged(results: Results) -> dict[tuple[frozenset[tuple[str, str]], str], Metric]:
    """Totals as the judges give them."""
    found: dict[tuple[frozenset[tuple[str, str]], str], Metric] = {}
    for total in results.totals:
        found |= {(frozenset(total.group.items()), name): total.metrics[name] for name in METRICS}
    for row in results.persona_score_totals:
        model = ("model", row.model)
        found[frozenset([model]), PERSONA_SCORE] = row.persona_score
        found |= {
            (frozenset([model, ("task", task)]), PERSONA_SCORE): score for task, score in row.tasks.items()
        }
    return found


def _interval(ends: Ends | None, *reasons: str | None) -> Interval:
    """An interval of a total as results have it, or the first reason there is why there is none."""
    if ends is None:
        return Interval.missing(next(filter(None, reasons), "not_counted: there is none"))
    return Interval(*ends)


def _errors(
    context: JobContext,
    cells: Sequence[JudgedCell],
    made: Calibration,
    judged: Sequence[JudgedSentences],
    minimum: int,
    maximum: int,
) -> list[contract.JudgeErrors]:
    lengths: Counter[tuple[int, int, int]] = Counter()
    for row in judged:
        lengths[row[:3]] += row.units
    shown: list[contract.JudgeErrors] = []
    for judge, each in enumerate(context.spec.judges):
        labels = [
            JudgedLabel(
                people=sentence.people,
                judged=dict(sentence.scores)[judge],
                stands_for=stands_for,
                response=sentence[:3],
                level=cells[sentence.cell].level,
                model=cells[sentence.cell].model,
                length=lengths[sentence[:3]],
            )
            for sentence, stands_for in made.labelled()
            if sentence.people and judge in dict(sentence.scores)
        ]
        shown += judge_errors(each.label, labels, range(minimum, maximum + 1), context.spec.seed)
    return shown
