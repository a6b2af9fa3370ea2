"""Two models on the same personas, tasks and dimensions: which pairs there are, and what their differences say."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple

from pydantic import Field

from app.domain.contract import Answer, Completeness
from app.domain.instruments.contract import PersonaInWords
from app.domain.labels.contract import CalibratedFigure
from app.domain.metrics.definition import Family
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import names, range_of
from app.domain.personagym.scores import SCORES
from app.domain.results.baselines import BaselineCell, Baselines
from app.domain.results.contract import CellResult, Results
from app.domain.results.unpaired import UnpairedDifference
from app.domain.results.warnings import ResultWarning
from app.domain.statistics.cells import TURNS
from app.domain.statistics.crossed import crossed_difference
from app.domain.statistics.design import DesignCell, Population, Stratum
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.paired import ALPHA, PairedDifference, holm, paired_difference
from app.domain.statistics.variability import Variability

METRICS = names(Family.ATOMIC, Family.RESPONSE, Family.SCORE)
"""Of cells, the ones that matter most first."""
Pairing = Literal["cells", "items"]
ACC_ATOM, PERSONA_SCORE, TASK_SCORE = "acc_atom", "persona_score", "task_score"
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
        wordings: How far it lies above what it would be without each persona instruction; ``None`` where that is not known.
        turns: Whether it is of texts that are turns of one conversation.
    """

    value: float | None
    reason: str | None
    scale: tuple[float, float]
    sentences: float | None = None
    n: int = 0
    wordings: Mapping[str, float] | None = None
    turns: bool = False


Figures = Mapping[tuple[str, Place], Figure]
"""A model's figures by metric and place."""


class Evidence(Answer):
    """The uncertainty of a difference over personas with all their pairs, or over items."""

    ci95: tuple[float, float] | None = Field(examples=[[0.07, 0.18]])
    ci95_reason: str | None = Field(
        description="Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC"
        " of different numbers of runs (`other_runs`), no p."
    )
    p_value: float | None = Field(
        description="Two-sided. Over personas and wordings: Student's t; over personas or items only: "
        "permutation of signs."
    )
    p_value_holm: float | None = Field(
        description="Holm-corrected for all metrics over all tasks except `primary`, which is not corrected, "
        "or for all metrics in single tasks."
    )
    smallest_p_value: float | None = Field(
        description="The smallest p-value that permutations of so few can give."
    )
    smallest_detectable: float | None = Field(
        description="The true difference that this comparison would detect with 80 % power at 5 %; `null` if "
        "there is none."
    )
    smallest_detectable_reason: str | None = Field(
        description="Why there is none: too few personas or items, or all differ by the same amount."
    )


class _Items(Answer):
    items: int = Field(description="Items, counted for each persona separately.")


class EvidenceOverItems(Evidence, _Items):
    """The uncertainty of a difference for these personas, over other items like these."""


class _Difference(Answer):
    metric: str = Field(
        description="`rc_atom_rarefied` and `ic_atom_rarefied` are RC_atom and IC_atom at equal numbers of "
        "scored sentences, given if the texts differ in length.",
        examples=["acc_atom"],
    )
    task: str | None = Field(description="`null` for all tasks together.")
    a: float = Field(description="Mean of a's paired values.")
    b: float
    difference: float = Field(examples=[0.12])
    pairs: int = Field(description="Pairs of values.")
    personas: int = Field(description="Number of personas behind them.")
    population: str = Field(
        description="The population that interval and p refer to: wordings (persona instructions) like these, "
        "if both sides have the same three or more and these suffice to estimate how other "
        "wordings would change the metric.",
        examples=[Population.BOTH.value],
    )


class Difference(Evidence, _Difference):
    """One metric's paired difference, a − b, with its uncertainty over personas like these."""

    these_wordings: Evidence | None = Field(
        description="The same for these wordings only; given only if `population` includes other wordings."
    )
    over_items: EvidenceOverItems | None = Field(description="Only if the pairs are items.")


class UnpairedFigure(Answer):
    """A value without a partner."""

    metric: str
    persona: str
    task: str | None
    dimension: str | None
    item: str | None = Field(description="The item, if the pairs are items.")
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
    """One of the two models compared."""

    job: str | None
    baseline: str | None
    named: str | None = Field(
        None,
        exclude_if=lambda name: name is None,
        description="The baseline of your own that it is, if it is one.",
    )
    model: str
    completeness: Completeness
    coverage: float | None = Field(
        description="Share of the model's planned verdicts (grades) behind its values; `null` if unknown."
    )
    simulated: bool
    warnings: list[ResultWarning] = Field(
        default_factory=list, description="Reasons to doubt its values, the gravest first."
    )


class Comparison(Answer):
    """Paired differences of two models."""

    object: Literal["comparison"] = "comparison"
    a: ComparedSide
    b: ComparedSide
    pairing: Pairing
    primary: str | None = Field(description="The metric that decides, over all tasks; chosen in advance.")
    simulated: bool
    differences: list[Difference]
    calibrated: list[CalibratedFigure] = Field(
        description="a − b as people would score it, if sentences of both were labelled in labelling rounds; "
        "only for paired cells."
    )
    unpaired: list[UnpairedDifference] = Field(
        default_factory=list,
        description="With a published PersonaGym model: differences of means over different personas, in place of `differences`.",
    )
    left_out: list[UnpairedFigure]
    personas: list[PersonaInWords] = Field(description="The personas of the values, compared or left out.")
    notes: list[str] = Field(description="What to know before judging the differences.")


class Compared(NamedTuple):
    """Every metric's difference over all tasks, then in single ones, and what was left out on the way to it."""

    differences: list[Difference]
    left_out: list[UnpairedFigure]


def figures_of(results: Results | Baselines, model: str) -> dict[tuple[str, Place], Figure]:
    """One model's figures."""
    found: dict[tuple[str, Place], Figure] = {}
    instructions = () if isinstance(results, Baselines) else results.manifest.get("instructions", ())
    for cell in results.cells:
        if cell.model != model:
            continue
        scale = (float(cell.scale.minimum), float(cell.scale.maximum))
        place = Place(cell.persona, cell.task, cell.dimension, cell.level)
        for name in METRICS:
            if name in cell.metrics:
                figure = _figure(cell.metrics[name], range_of(name, scale))
                found[name, place] = replace(
                    figure,
                    sentences=_sentences(cell, name),
                    wordings=_by_words(cell, name, instructions),
                )
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


def _by_words(
    cell: CellResult | BaselineCell, metric: str, instructions: Sequence[str]
) -> dict[str, float] | None:
    """By the words of each persona instruction, by which another job has it too; by number where only that is known."""
    if isinstance(cell, BaselineCell) or metric not in (cell.wording_effects or {}):
        return None
    return {
        instructions[n] if n < len(instructions) else str(n): effect
        for n, effect in (cell.wording_effects or {})[metric].items()
    }


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
    pairs: dict[tuple[str, Place], _Pair] = {}
    for metric, place in sorted(a.keys() | b.keys()):
        one, other = a.get((metric, place)), b.get((metric, place))
        reason = _obstacle(one, other)
        if reason is not None:
            left_out.append(UnpairedFigure.at(place, metric, reason))
        elif one is not None and other is not None and one.value is not None and other.value is not None:
            width = one.scale[1] - one.scale[0]
            pairs[metric, place] = _Pair(one.value, other.value, width, _effects(one, other))
    if not pairs:
        return Compared([], left_out)
    samples = _Samples(
        PersonaSample([place.persona for _, place in pairs], SEED),
        PersonaSample([asked_of(place) for _, place in pairs], SEED)
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
        [_without_evidence(row, obstacle_to_tests(row.metric, row.task, a, b)) for row in part]
        for part in (overall, single)
    ]
    return Compared([*_corrected(rows[0], primary_of(names)), *_corrected(rows[1], None)], left_out)


def primary_of(metrics: Collection[str]) -> str | None:
    """The one of these metrics that decides over all tasks: by which models are ordered."""
    return next((name for name in (ACC_ATOM, PERSONA_SCORE) if name in metrics), None)


class _Pair(NamedTuple):
    """Two models' figures at one place.

    Attributes:
        a: The first model's.
        b: The second's.
        width: The greatest difference that there can be.
        wordings: The difference of what leaving each wording out changes; ``None`` where it is not known.
    """

    a: float
    b: float
    width: float
    wordings: Mapping[str, float] | None


def _effects(one: Figure, other: Figure) -> Mapping[str, float] | None:
    if one.wordings is None or other.wordings is None or one.wordings.keys() != other.wordings.keys():
        return None
    return {words: effect - other.wordings[words] for words, effect in one.wordings.items()}


def populations(differences: Sequence[Difference]) -> str | None:
    """Whom intervals and p-values speak of, metric by metric; ``None`` without any.

    Args:
        differences: As :func:`compare` has them.
    """
    found: dict[str, list[str]] = {}
    for each in differences:
        if each.task is None and each.p_value is not None:
            found.setdefault(each.population, []).append(each.metric)
    return population_note(found)


def population_note(metrics: Mapping[str, Sequence[str]]) -> str | None:
    """Whom intervals and p-values speak of, from the metrics of each population."""
    if not metrics:
        return None
    return (
        "Intervals and p-values speak of "
        + "; of ".join(
            f"{population} ({', '.join(names_)})" for population, names_ in sorted(metrics.items())
        )
        + "."
    )


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
    primary = primary_of([each.metric for each in differences if each.task is None])
    others = sum(each.metric != primary for each in tested)
    if smallest * max(1, others) <= ALPHA:
        return None
    corrected = f", or below {min(1.0, smallest * others):.2g} corrected for {others} metrics"
    every = sum(each.task is None and each.p_value is not None for each in differences)
    which = "" if len(tested) == every else f" of {', '.join(each.metric for each in tested)}"
    return f"{most.personas} personas cannot give a p-value{which} below {smallest:.2g}{corrected * (others > 1)}."


class _Row(NamedTuple):
    """One metric's difference, over all tasks or in one.

    Attributes:
        metric: The metric.
        task: The task; ``None`` for all together.
        a: The mean of the first model's figures that have a partner.
        b: The second's.
        over_personas: a − b, personas being what is drawn anew.
        over_both: a − b, personas and wordings being what is drawn anew; ``None`` where wordings do not tell.
        over_items: The same difference, items being what is drawn anew; ``None`` where figures are not by item.
    """

    metric: str
    task: str | None
    a: float
    b: float
    over_personas: PairedDifference
    over_both: PairedDifference | None
    over_items: PairedDifference | None

    @property
    def main(self) -> PairedDifference:
        """The one that speaks of more."""
        return self.over_both or self.over_personas


@dataclass(frozen=True, slots=True)
class _Samples:
    """What is drawn anew: personas, each with all its pairs, or what a persona was asked, each with its pairs."""

    personas: PersonaSample
    items: PersonaSample | None


def asked_of(place: Place) -> str:
    """What tells one item of one persona from any other; dimensions that share an answer share it."""
    return f"{place.persona}\0{place.task}\0{place.item}"


def _figure(metric: Metric, scale: tuple[float, float]) -> Figure:
    return Figure(metric.value, metric.reason, scale, n=metric.n, turns=metric.ci95_reason == TURNS)


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


def obstacle_to_tests(metric: str, task: str | None, a: Figures, b: Figures) -> str | None:
    """Why a difference may not be the models', whatever its interval; ``None`` if it is theirs."""
    if any(side[key].turns for key in _shared(metric, task, a, b) for side in (a, b)):
        return TURNS
    return other_length(metric, task, a, b) or other_runs(metric, task, a, b)


def _row(
    metric: str,
    task: str | None,
    pairs: Mapping[tuple[str, Place], _Pair],
    samples: _Samples,
) -> _Row:
    found = [
        (place, pair)
        for (name, place), pair in pairs.items()
        if name == metric and task in {None, place.task}
    ]
    width = max(pair.width for _, pair in found)
    by_persona = [(place.persona, pair.a - pair.b) for place, pair in found]
    by_item = [(asked_of(place), pair.a - pair.b) for place, pair in found]
    return _Row(
        metric=metric,
        task=task,
        a=sum(pair.a for _, pair in found) / len(found),
        b=sum(pair.b for _, pair in found) / len(found),
        over_personas=paired_difference(by_persona, width, samples.personas, SEED),
        over_both=crossed_difference(_design(found), width),
        over_items=None
        if samples.items is None
        else paired_difference(by_item, width, samples.items, SEED, of="items"),
    )


def _design(found: Sequence[tuple[Place, _Pair]]) -> list[DesignCell]:
    """The differences at their places in the design; nothing where wordings are not known everywhere."""
    if any(pair.wordings is None for _, pair in found):
        return []
    numbers = {
        words: n
        for n, words in enumerate(sorted({words for _, pair in found for words in pair.wordings or ()}))
    }
    return [
        DesignCell(
            place.persona,
            Stratum(place.task, place.dimension, place.level),
            Variability(
                pair.a - pair.b,
                {numbers[words]: effect for words, effect in (pair.wordings or {}).items()},
                count=len(pair.wordings or ()),
            ),
        )
        for place, pair in found
    ]


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
        over_both=None,
        over_items=None if row.over_items is None else replace(row.over_items, **nothing),
    )


def _corrected(rows: Sequence[_Row], primary: str | None) -> list[Difference]:
    """The rows with their p-values corrected for all of them but the primary metric."""
    p_values = _holm(rows, [row.main.p_value for row in rows], primary)
    of_personas = _holm(rows, [row.over_personas.p_value for row in rows], primary)
    of_items = _holm(
        rows, [None if row.over_items is None else row.over_items.p_value for row in rows], primary
    )
    return [
        Difference(
            metric=row.metric,
            task=row.task,
            a=row.a,
            b=row.b,
            difference=row.over_personas.value,
            pairs=row.over_personas.pairs,
            personas=row.over_personas.clusters,
            population=(Population.PERSONAS if row.over_both is None else Population.BOTH).value,
            **_evidence(row.main, p),
            these_wordings=None
            if row.over_both is None
            else Evidence(**_evidence(row.over_personas, p_personas)),
            over_items=None
            if row.over_items is None
            else EvidenceOverItems(items=row.over_items.clusters, **_evidence(row.over_items, p_items)),
        )
        for row, p, p_personas, p_items in zip(rows, p_values, of_personas, of_items, strict=True)
    ]


def _holm(rows: Sequence[_Row], p_values: Sequence[float | None], primary: str | None) -> list[float | None]:
    """The primary metric was named beforehand: the others neither change its p, nor does it theirs."""
    others = iter(holm([p for row, p in zip(rows, p_values, strict=True) if row.metric != primary]))
    return [p if row.metric == primary else next(others) for row, p in zip(rows, p_values, strict=True)]


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
