"""Two models on the same personas, tasks and dimensions: which pairs there are, and what their differences say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple

from pydantic import Field

from app.domain.contract import Answer, Completeness
from app.domain.labels.contract import CalibratedFigure
from app.domain.metrics.definition import Family
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import names, range_of
from app.domain.personagym.scores import SCORES
from app.domain.results.baselines import BaselineCell, Baselines
from app.domain.results.contract import CellResult, Results
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.paired import ALPHA, PairedDifference, holm, paired_difference

METRICS = names(Family.ATOMIC, Family.RESPONSE, Family.SCORE)
"""Of cells, the ones that matter most first."""
Pairing = Literal["cells", "items"]
PERSONA_SCORE, TASK_SCORE = "persona_score", "task_score"
RAREFIED = {"rc_atom": "rc_atom_rarefied", "ic_atom": "ic_atom_rarefied"}
"""What these are called at the same number of sentences of both models."""
OF_RUNS, OF_RESPONSES = ("rc", "rc_atom"), ("acc", "ic_atom")
"""The metrics that depend on the number of sentences in a run, or in a response."""
SAME_LENGTH = 1.05
"""Ratio of two mean numbers of sentences up to which texts count as equally long."""
SAME_SPREAD = 0.01
"""RC's spread (denominator n) of n runs is too small by a share of about 3/(4n). A difference of these shares that counts as none."""
SEED = 0


class Place(NamedTuple):
    """What two figures must share to be a pair; empty where the figure has no such part."""

    persona: str
    task: str
    dimension: str
    level: str
    item: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one model.

    Attributes:
        value: ``None`` where there is none.
        reason: Why there is none.
        scale: Ends of the scale on which it lies.
        sentences: Scored sentences, on average, of the runs or responses behind it, whichever matters; ``None`` of metrics that do
            not depend on it, and where nobody knows.
        n: What it was taken over; runs, of RC.
    """

    value: float | None
    reason: str | None
    scale: tuple[float, float]
    sentences: float | None = None
    n: int = 0


Figures = Mapping[tuple[str, Place], Figure]
"""A model's figures by metric and place."""


class Evidence(Answer):
    """How sure a difference is, for what is drawn anew: personas with all their pairs, or items."""

    ci95: tuple[float, float] | None = Field(examples=[[0.07, 0.18]])
    ci95_reason: str | None = Field(
        description="Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC"
        " of different numbers of runs (`other_runs`), no p."
    )
    p_value: float | None = Field(description="Two-sided, by permutation of signs over personas, or items.")
    p_value_holm: float | None = Field(
        description="Corrected (Holm) for all metrics over all tasks, or for all metrics in single tasks."
    )
    smallest_p_value: float | None = Field(description="The smallest that so few of them can give.")
    smallest_detectable: float | None = Field(
        description="The true difference that this comparison would find in 80 % of cases, at 5 %; `null` where there is none."
    )
    smallest_detectable_reason: str | None = Field(
        description="Why there is none: so few personas, or items, show nothing, or all differ alike."
    )


class _Items(Answer):
    items: int = Field(description="Items, each persona's for itself.")


class EvidenceOverItems(Evidence, _Items):
    """How sure a difference is for these very personas, if they were asked other items like these."""


class _Difference(Answer):
    metric: str = Field(
        description="`rc_atom_rarefied` and `ic_atom_rarefied` are RC_atom and IC_atom at the same number of scored sentences;"
        " they are there where the texts differ in length.",
        examples=["acc_atom"],
    )
    task: str | None = Field(description="`null` for all tasks together.")
    a: float = Field(description="Mean of a's figures that have a partner.")
    b: float
    difference: float = Field(examples=[0.12])
    pairs: int = Field(description="Pairs of figures.")
    personas: int = Field(description="Personas that they come from.")


class Difference(Evidence, _Difference):
    """One metric's paired difference, a − b, and how sure it is over personas like these."""

    over_items: EvidenceOverItems | None = Field(description="Only where the pairs are items.")


class UnpairedFigure(Answer):
    """A figure that has no partner."""

    metric: str
    persona: str
    task: str | None
    dimension: str | None
    item: str | None = Field(description="What was asked, where the pairs are items.")
    reason: str

    @classmethod
    def at(cls, place: Place, metric: str, reason: str) -> "UnpairedFigure":
        """The figure at a place."""
        return cls(
            metric=metric,
            persona=place.persona,
            task=place.task or None,
            dimension=place.dimension or None,
            item=place.item or None,
            reason=reason,
        )


class ComparedSide(Answer):
    """One of the two that were compared."""

    job: str | None
    baseline: str | None
    model: str
    completeness: Completeness
    coverage: float | None = Field(
        description="Share of the model's planned verdicts (grades) that its figures are of; `null` where it is not known."
    )
    simulated: bool


class Comparison(Answer):
    """Paired differences of two models."""

    object: Literal["comparison"] = "comparison"
    a: ComparedSide
    b: ComparedSide
    pairing: Pairing
    simulated: bool
    differences: list[Difference]
    calibrated: list[CalibratedFigure] = Field(
        description="a − b as people would give it, where labelling rounds' sentences of both are labelled; of paired cells only."
    )
    left_out: list[UnpairedFigure]
    notes: list[str] = Field(description="What a reader must know to judge the differences.")


class Compared(NamedTuple):
    """Every metric's difference over all tasks, then in single ones, and what was left out on the way to it."""

    differences: list[Difference]
    left_out: list[UnpairedFigure]


def figures_of(results: Results | Baselines, model: str) -> dict[tuple[str, Place], Figure]:
    """One model's figures."""
    found: dict[tuple[str, Place], Figure] = {}
    for cell in results.cells:
        if cell.model != model:
            continue
        scale = (float(cell.scale.minimum), float(cell.scale.maximum))
        place = Place(cell.persona, cell.task, cell.dimension, cell.level)
        for name in METRICS:
            if name in cell.metrics:
                figure = _figure(cell.metrics[name], range_of(name, scale))
                found[name, place] = replace(figure, sentences=_sentences(cell, name))
    for row in results.persona_scores:
        if row.model != model:
            continue
        whole = Place(row.persona, "", "", "")
        # A mean over other tasks is another measure, so its tasks are part of its place.
        tasks = "+".join(sorted(row.tasks))
        found[PERSONA_SCORE, whole._replace(level=tasks)] = _figure(row.persona_score, SCORES)
        for task, score in row.tasks.items():
            found[TASK_SCORE, whole._replace(task=task)] = _figure(score, SCORES)
    return found


def _sentences(cell: CellResult | BaselineCell, metric: str) -> float | None:
    if isinstance(cell, BaselineCell):
        return None
    return sentences_of(
        metric,
        scored=cell.units.scored,
        runs=cell.runs_used * max(1, len(cell.by_judge)),
        responses=cell.responses["total"] - cell.responses["without_scored_unit"],
    )


def sentences_of(metric: str, *, scored: float, runs: int, responses: int) -> float | None:
    """See :class:`Figure`; of several judges the mean, as all three count judgements."""
    groups = runs if metric in OF_RUNS else responses if metric in OF_RESPONSES else 0
    return scored / groups if groups else None


def other_length(metric: str, task: str | None, a: Figures, b: Figures) -> str | None:
    """Why a metric of texts of different length shows no difference of models; ``None`` where lengths are the same or unknown.

    Args:
        metric: One of :data:`METRICS`.
        task: In which task; ``None`` for all together.
        a: The first model's figures.
        b: The second's.
    """
    shared = _shared(metric, task, a, b)
    known = [(one, other) for key in shared if (one := a[key].sentences) and (other := b[key].sentences)]
    if not known:
        return None
    one, other = (fmean(side) for side in zip(*known, strict=True))
    if max(one, other) <= SAME_LENGTH * min(one, other):
        return None
    per = "run" if metric in OF_RUNS else "response"
    return f"other_length: a has {one:.1f} scored sentences per {per}, b {other:.1f}, on whose number this metric depends"


def other_runs(metric: str, task: str | None, a: Figures, b: Figures) -> str | None:
    """Why RC over different numbers of runs shows no difference of models; ``None`` where they hardly differ, and of other metrics."""
    if metric != "rc":
        return None
    known = [key for key in _shared(metric, task, a, b) if a[key].n and b[key].n]
    if not known:
        return None
    one, other = (fmean(side[key].n for key in known) for side in (a, b))
    if abs(3 / (4 * one) - 3 / (4 * other)) <= SAME_SPREAD:
        return None
    return f"other_runs: a has {one:.1f} runs, b {other:.1f}, on whose number RC depends"


def _shared(metric: str, task: str | None, a: Figures, b: Figures) -> list[tuple[str, Place]]:
    return [key for key in a.keys() & b.keys() if key[0] == metric and task in {None, key[1].task}]


def lengths_differ(a: Figures, b: Figures) -> bool:
    """Whether texts differ in length, in all tasks together or in one."""
    tasks = {None, *(place.task for _, place in a)}
    return any(other_length(metric, task, a, b) for metric in (*OF_RUNS, *OF_RESPONSES) for task in tasks)


def compare(a: Figures, b: Figures) -> Compared:
    """Pairs two models' figures and sums up their differences, metric by metric.

    Args:
        a: The first model's figures.
        b: The second's.
    """
    left_out: list[UnpairedFigure] = []
    pairs: dict[tuple[str, Place], tuple[float, float, float]] = {}
    for metric, place in sorted(a.keys() | b.keys()):
        one, other = a.get((metric, place)), b.get((metric, place))
        reason = _obstacle(one, other)
        if reason is not None:
            left_out.append(UnpairedFigure.at(place, metric, reason))
        elif one is not None and other is not None and one.value is not None and other.value is not None:
            pairs[metric, place] = one.value, other.value, one.scale[1] - one.scale[0]
    if not pairs:
        return Compared([], left_out)
    samples = _Samples(
        PersonaSample([place.persona for _, place in pairs], SEED),
        PersonaSample([_asked(place) for _, place in pairs], SEED)
        if any(place.item for _, place in pairs)
        else None,
    )
    wanted = (PERSONA_SCORE, *METRICS, *RAREFIED.values())
    names = [name for name in wanted if any(metric == name for metric, _ in pairs)]
    overall = [_row(name, None, pairs, samples) for name in names]
    single = [
        _row(metric, task, pairs, samples)
        for metric, task in sorted({(metric, place.task) for metric, place in pairs if place.task})
    ]
    rows = [
        [_without_evidence(row, _obstacle_to_tests(row.metric, row.task, a, b)) for row in part]
        for part in (overall, single)
    ]
    return Compared([*_corrected(rows[0]), *_corrected(rows[1])], left_out)


def attainable_p_value(differences: Sequence[Difference]) -> str | None:
    """What so few personas cannot show, however great the difference; ``None`` where they could.

    Args:
        differences: As :func:`compare` has them.
    """
    tested = [each for each in differences if each.task is None and each.smallest_p_value is not None]
    if not tested:
        return None
    most = max(tested, key=lambda each: each.personas)
    smallest = most.smallest_p_value or 0.0
    if smallest * len(tested) <= ALPHA:
        return None
    corrected = f", or below {min(1.0, smallest * len(tested)):.2g} corrected for {len(tested)} metrics"
    return (
        f"{most.personas} personas cannot give a p-value below {smallest:.2g}{corrected * (len(tested) > 1)}."
    )


class _Row(NamedTuple):
    """One metric's difference, over all tasks or in one.

    Attributes:
        metric: The metric.
        task: The task; ``None`` for all together.
        a: The mean of the first model's figures that have a partner.
        b: The second's.
        over_personas: a − b, personas being what is drawn anew.
        over_items: The same difference, items being what is drawn anew; ``None`` where figures are not by item.
    """

    metric: str
    task: str | None
    a: float
    b: float
    over_personas: PairedDifference
    over_items: PairedDifference | None


@dataclass(frozen=True, slots=True)
class _Samples:
    """What is drawn anew: personas, each with all its pairs, or what a persona was asked, each with its pairs."""

    personas: PersonaSample
    items: PersonaSample | None


def _asked(place: Place) -> str:
    """What tells one item of one persona from any other; dimensions that share an answer share it."""
    return f"{place.persona}\0{place.task}\0{place.item}"


def _figure(metric: Metric, scale: tuple[float, float]) -> Figure:
    return Figure(metric.value, metric.reason, scale, n=metric.n)


def _obstacle(one: Figure | None, other: Figure | None) -> str | None:
    """Why two figures make no pair; ``None`` if they do."""
    if one is None or other is None:
        side = "a" if one is None else "b"
        return f"not_in_{side}: {side} has no such persona, task and dimension"
    for side, figure in (("a", one), ("b", other)):
        if figure.value is None:
            return f"no_value_in_{side}: {(figure.reason or 'no reason given').partition(': ')[2]}"
    if one.scale != other.scale:
        return "other_scale: the two are scored on different scales"
    return None


def _obstacle_to_tests(metric: str, task: str | None, a: Figures, b: Figures) -> str | None:
    """Why a difference may not be the models', whatever its interval; ``None`` if it is theirs."""
    return other_length(metric, task, a, b) or other_runs(metric, task, a, b)


def _row(
    metric: str,
    task: str | None,
    pairs: Mapping[tuple[str, Place], tuple[float, float, float]],
    samples: _Samples,
) -> _Row:
    found = [
        (place, *pair)
        for (name, place), pair in pairs.items()
        if name == metric and task in {None, place.task}
    ]
    width = max(width for *_, width in found)
    by_persona = [(place.persona, one - other) for place, one, other, _ in found]
    by_item = [(_asked(place), one - other) for place, one, other, _ in found]
    return _Row(
        metric=metric,
        task=task,
        a=sum(one for _, one, _, _ in found) / len(found),
        b=sum(other for _, _, other, _ in found) / len(found),
        over_personas=paired_difference(by_persona, width, samples.personas, SEED),
        over_items=None
        if samples.items is None
        else paired_difference(by_item, width, samples.items, SEED, of="items"),
    )


def _without_evidence(row: _Row, reason: str | None) -> _Row:
    """The row as it is without a reason, else with its difference alone."""
    if reason is None:
        return row
    nothing: dict[str, Any] = {
        "interval": Interval.missing(reason),
        "p_value": None,
        "smallest_p_value": None,
        "detectable": None,
        "detectable_reason": reason,
    }
    return row._replace(
        over_personas=replace(row.over_personas, **nothing),
        over_items=None if row.over_items is None else replace(row.over_items, **nothing),
    )


def _corrected(rows: Sequence[_Row]) -> list[Difference]:
    """The rows with their p-values corrected for all of them."""
    p_values = holm([row.over_personas.p_value for row in rows])
    of_items = holm([None if row.over_items is None else row.over_items.p_value for row in rows])
    return [
        Difference(
            metric=row.metric,
            task=row.task,
            a=row.a,
            b=row.b,
            difference=row.over_personas.value,
            pairs=row.over_personas.pairs,
            personas=row.over_personas.clusters,
            **_evidence(row.over_personas, p),
            over_items=None
            if row.over_items is None
            else EvidenceOverItems(items=row.over_items.clusters, **_evidence(row.over_items, p_items)),
        )
        for row, p, p_items in zip(rows, p_values, of_items, strict=True)
    ]


def _evidence(difference: PairedDifference, p_holm: float | None) -> dict[str, Any]:
    """How sure a difference is, as :class:`Evidence` has it."""
    return {
        "ci95": difference.interval.ends,
        "ci95_reason": difference.interval.reason,
        "p_value": difference.p_value,
        "p_value_holm": p_holm,
        "smallest_p_value": difference.smallest_p_value,
        "smallest_detectable": difference.detectable,
        "smallest_detectable_reason": difference.detectable_reason,
    }
