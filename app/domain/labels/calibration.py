"""A job's totals as people would give them, from the judges' scores of all sentences and people's of a drawn sample."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.labels.rounds import Pilot
from app.domain.metrics.acc_atom_corrected import chance_share
from app.domain.metrics.definition import UNIT_RANGE
from app.domain.metrics.interval import Interval
from app.domain.metrics.levels import level_indices
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.prediction_powered import (
    FEWEST_OF_STRATUM,
    Calibrated,
    Population,
    Sample,
    beyond_texts,
    calibrated,
    combined,
)
from app.domain.statistics.resampling import cluster_weights, percentile_interval

GROUPINGS = (("model",), ("model", "level"), ("model", "task"))
MetricName = Literal["mean", "acc_atom", "acc_atom_corrected"]
METRICS: tuple[MetricName, ...] = ("mean", "acc_atom", "acc_atom_corrected")
"""Those that are means over sentences."""
PERSONA_SCORE: Literal["persona_score"] = "persona_score"
FigureName = MetricName | Literal["persona_score"]
NOT_CALIBRATED: Mapping[str, str] = {
    **dict.fromkeys(
        ("acc", "rc", "rc_corrected"),
        "whole_texts: it is of texts' means, and rounds draw single sentences of a text",
    ),
    **dict.fromkeys(
        ("ic_atom", "ic_atom_corrected", "rc_atom", "rc_atom_corrected"),
        "whole_texts: it is of how a text's scores are spread, and rounds draw single sentences of a text",
    ),
}
"""Why the others have no calibrated figure: without what people say of all sentences of a text, theirs is not known."""
HALF_WIDTH = 0.03
"""How narrow an interval labels are counted for, unless somebody says."""
LEAST_INFORMATION = 0.05
"""Sensitivity + specificity − 1, by which Rogan and Gladen divide; 0 is a judge who answers by chance."""
UNINFORMATIVE = "uninformative_judge: on what was labelled of a level, the judge tells sentences in it from others no better than chance"
NO_LABEL = "no_label: none of these sentences was drawn and labelled"


@dataclass(frozen=True, slots=True)
class JudgedCell:
    """A cell on the dimension that was labelled.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        level: The persona's level on the dimension.
    """

    model: str
    persona: str
    task: str
    level: str


class JudgedSentences(NamedTuple):
    """Sentences of one response to which the judges gave the same scores.

    Attributes:
        cell: Index of its cell.
        run: Its run.
        item: Its item.
        scores: Index and score of each judge who gave one.
        units: How many sentences.
    """

    cell: int
    run: int
    item: int
    scores: tuple[tuple[int, int], ...]
    units: int


class LabelledSentence(NamedTuple):
    """A sentence that was drawn in a round and that people scored.

    Attributes:
        cell: Index of its cell.
        run: Its response's run.
        item: Its response's item.
        scores: As those of :class:`JudgedSentences`.
        people: Each annotator's score; empty where all found it not applicable.
    """

    cell: int
    run: int
    item: int
    scores: tuple[tuple[int, int], ...]
    people: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CalibratedFigure:
    """One metric of a group of cells, or the difference of two groups' metrics.

    Attributes:
        keys: What the group's cells have in common; of a difference both models.
        metric: Its name.
        found: The estimate.
        bounds: Its range.
        cells: How many cells it is of, of PersonaScores how many personas; of a difference, how many each of the two.
        reason: Why there is no estimate, where there is none.
    """

    keys: Mapping[str, str]
    metric: FigureName
    found: Calibrated | None
    bounds: tuple[float, float]
    cells: int
    reason: str = NO_LABEL

    def texts(self) -> Metric:
        """With the interval for these very texts."""
        if self.found is None:
            return Metric.missing(self.reason)
        value = min(max(self.found.value, self.bounds[0]), self.bounds[1])
        return Metric.of(value, self.found.labels).within(self.found.interval(self.bounds))

    def beyond(self, judged: Interval) -> Interval:
        """The interval for more than these texts, given the judge's own."""
        if self.found is None:
            return Interval.missing(self.reason)
        return beyond_texts(self.found, judged, self.bounds)


class Calibration:
    """The sentences of one dimension, and what people said of some of them."""

    def __init__(
        self,
        cells: Sequence[JudgedCell],
        scale: Scale,
        judged: Sequence[JudgedSentences],
        labelled: Sequence[LabelledSentence],
    ) -> None:
        self._cells = cells
        self.scale = scale
        self._levels = np.array([scale.levels.index(cell.level) for cell in cells], dtype=np.int64)
        self._chance = np.array([float(chance_share(scale, level)) for level in self._levels.tolist()])
        self._counts = np.array([each.units for each in judged], dtype=np.float64)
        self._of_cell = np.array([each.cell for each in judged], dtype=np.int64)
        self._weights, self._predicted = self._contributions(judged)
        self._keys, self._strata = self._numbered(judged)
        rows = {each[:4]: n for n, each in enumerate(judged)}
        self._labelled = [each for each in labelled if each[:4] in rows]
        self._rows = np.array([rows[each[:4]] for each in self._labelled], dtype=np.int64)
        self._said = self._answers()
        sizes = np.bincount(self._strata, weights=self._counts)
        drawn = np.bincount(self._strata[self._rows], minlength=len(sizes))
        self._stands_for = sizes[self._strata[self._rows]] / drawn[self._strata[self._rows]]

    def labelled(self) -> list[tuple[LabelledSentence, float]]:
        """Each labelled sentence, and for how many it stands."""
        return list(zip(self._labelled, self._stands_for.tolist(), strict=True))

    def pilot(self) -> Pilot:
        """How far people and judges are apart in ACC_atom in each stratum from which rounds draw.

        A sentence counts as in the totals, and a stratum's variance is drawn toward the common one by the weight of one label.
        """
        said = self._said["acc_atom"]
        known = ~np.isnan(said)
        rows = self._rows[known]
        weights = self._weights[rows] / (self._counts @ self._weights / self._counts.sum())
        apart = weights * (said[known] - self._predicted["acc_atom"][rows])
        strata = self._strata[rows]
        labels = np.bincount(strata, minlength=len(self._keys))
        means = np.bincount(strata, weights=apart, minlength=len(labels)) / np.maximum(1, labels)
        squares = np.bincount(strata, weights=(apart - means[strata]) ** 2, minlength=len(labels))
        common = squares.sum() / max(1, (labels - 1).clip(0).sum())
        spreads = np.sqrt((squares + common) / np.maximum(1, labels))
        return Pilot(
            int(known.sum()),
            {
                (task, score): float(spread)
                for (score, task), n, spread in zip(self._keys, labels, spreads, strict=True)
                if n
            },
        )

    def totals(self) -> list[CalibratedFigure]:
        """Each metric of each group of cells, by model and within it by level and task."""
        found = []
        for by in GROUPINGS:
            groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
            for n, cell in enumerate(self._cells):
                groups[tuple(getattr(cell, name) for name in by)].append(n)
            for keys, cells in sorted(groups.items()):
                named = dict(zip(by, keys, strict=True))
                found += [self.figure(named, metric, cells) for metric in METRICS]
        return found

    def differences(self) -> list[CalibratedFigure]:
        """Of each two models the first one's metrics less the other's, over the cells that both have."""
        pairs = combinations(sorted({cell.model for cell in self._cells}), 2)
        return [each for one, other in pairs for each in self.difference(one, self, other)]

    def difference(
        self, model: str, other: "Calibration", other_model: str, without: Collection[str] = ()
    ) -> list[CalibratedFigure]:
        """A model's metrics less another's, over the cells that both have; none if there is no such cell.

        Args:
            model: The model.
            other: The other model's sentences on the same dimension: these, or another job's.
            other_model: The other model.
            without: Personas that are left out.
        """
        places, others = self.places(model), other.places(other_model)
        both = sorted(place for place in places.keys() & others.keys() if place[0] not in without)
        if not both or self.scale != other.scale:
            return []
        found = []
        for metric in METRICS:
            first = self.figure({}, metric, [places[place] for place in both])
            second = other.figure({}, metric, [others[place] for place in both])
            keys = {"a": model, "b": other_model}
            found.append(_sum(keys, [(1.0, first), (-1.0, second)], len(both)))
        return found

    def places(self, model: str) -> dict[tuple[str, str, str], int]:
        """A model's cells that have a scored sentence, by persona, task and level."""
        judged = set(self._of_cell.tolist())
        return {
            (cell.persona, cell.task, cell.level): n
            for n, cell in enumerate(self._cells)
            if cell.model == model and n in judged
        }

    def rogan_gladen(self, seed: int) -> dict[str, Metric]:
        """Each model's ACC_atom as it would be if the judge erred everywhere as on what was labelled of the level, by model.

        (p + specificity − 1) / (sensitivity + specificity − 1) in each level (Rogan and Gladen, 1978). All models share the
        judge's error rates, which prediction-powered estimates do not take for granted: where the two are apart, look at them.
        """
        in_level = self._said["acc_atom"]
        judged = self._predicted["acc_atom"][self._rows]
        known = ~np.isnan(in_level)
        weights = cluster_weights(seed, ("calibration",), len(self._labelled))
        drawn = np.column_stack((np.ones(len(weights)), weights)) * self._stands_for[:, np.newaxis]
        errors = {}
        for level in np.unique(self._levels).tolist():
            own = known & (self._levels[self._of_cell[self._rows]] == level)
            errors[level] = _error_rates(in_level[own], judged[own], drawn[own])
        found = {}
        for model in sorted({cell.model for cell in self._cells}):
            total, cells, lacking = np.zeros(drawn.shape[1]), 0, ""
            for level, (sensitivity, specificity) in errors.items():
                cells_here = [
                    n
                    for n, cell in enumerate(self._cells)
                    if cell.model == model and self._levels[n] == level
                ]
                known_here = np.intersect1d(cells_here, self._of_cell)
                judged_here = (
                    calibrated(*self.sentences_of("acc_atom", known_here)) if len(known_here) else None
                )
                if judged_here is None:
                    continue
                lacking = lacking or self._lacking_labels(known_here)
                share = (judged_here.judged + specificity - 1) / (sensitivity + specificity - 1)
                total += len(cells_here) * np.clip(share, 0.0, 1.0)
                cells += len(cells_here)
            metric = _drawn_metric(total / max(1, cells), len(self._labelled))
            found[model] = Metric.missing(lacking) if lacking and metric.value is not None else metric
        return found

    def figure(self, keys: Mapping[str, str], metric: MetricName, cells: Sequence[int]) -> CalibratedFigure:
        """A metric of some cells, given by their indexes."""
        bounds = self._bounds(metric, cells)
        known = np.intersect1d(cells, self._of_cell)
        if not len(known):
            return CalibratedFigure(keys, metric, None, bounds, 0)
        lacking = self._lacking_labels(known)
        if lacking:
            return CalibratedFigure(keys, metric, None, bounds, len(known), lacking)
        return CalibratedFigure(
            keys, metric, calibrated(*self.sentences_of(metric, known)), bounds, len(known)
        )

    def _lacking_labels(self, cells: IntArray) -> str:
        """Say how many scored labels are missing for a figure; empty if there are enough.

        "Not applicable" is a label without a score. Strata are the judges' rounded scores; a stratum with fewer
        sentences than the minimum needs no more labels than it has sentences.
        """
        scores = np.array([score for score, _ in self._keys])[self._strata]
        own = np.isin(self._of_cell, cells)
        labelled = self._rows[~np.isnan(self._said["acc_atom"])]
        given = Counter(scores[labelled[own[labelled]]].tolist())
        sizes = np.bincount(scores[own] - scores.min(), weights=self._counts[own])
        missing = {
            score: int(min(FEWEST_OF_STRATUM, size)) - given[score]
            for score, size in enumerate(sizes.tolist(), int(scores.min()))
            if given[score] < min(FEWEST_OF_STRATUM, size)
        }
        if not missing or not self._labelled:
            return ""
        named = ", ".join(f"{count} with the judges' score {score}" for score, count in missing.items())
        return (
            f"too_few_scored_labels: {sum(missing.values())} more scored labels are needed: {named}; each score needs"
            f" {FEWEST_OF_STRATUM}, and “not applicable” is no score"
        )

    def _bounds(self, metric: MetricName, cells: Sequence[int]) -> tuple[float, float]:
        if metric == "mean":
            return float(self.scale.minimum), float(self.scale.maximum)
        if metric == "acc_atom":
            return UNIT_RANGE
        chance = self._chance[list(cells)]
        return float(np.mean(-chance / (1 - chance))) if len(chance) else 0.0, 1.0

    def sentences_of(self, metric: MetricName, cells: IntArray) -> tuple[Population, Sample]:
        """All sentences of some cells, and those that people labelled.

        Args:
            metric: Whose values.
            cells: Their indexes, at least one; each has a sentence with a score.
        """
        share = np.zeros(len(self._cells))
        share[cells] = 1 / len(cells)
        weights = self._weights * share[self._of_cell]
        rows = np.flatnonzero(weights)
        sentences = np.flatnonzero(weights[self._rows])
        predicted = self._predicted[metric]
        places = self._rows[sentences]
        return (
            Population(self._strata[rows], self._counts[rows], weights[rows], predicted[rows]),
            Sample(
                strata=self._strata[places],
                stands_for=self._stands_for[sentences],
                weights=weights[places],
                predicted=predicted[places],
                said=self._said[metric][sentences],
            ),
        )

    def _answers(self) -> dict[MetricName, FloatArray]:
        """In each metric what people said of each labelled sentence; NaN where all found it not applicable."""
        given = [(n, each.cell, score) for n, each in enumerate(self._labelled) for score in each.people]
        places, cells, scores = np.array(given, dtype=np.int64).reshape(-1, 3).T
        counts = np.bincount(places, minlength=len(self._labelled)).astype(np.float64)
        counts[counts == 0] = np.nan
        return {
            metric: np.bincount(places, weights=values, minlength=len(counts)) / counts
            for metric, values in self._values(scores, cells).items()
        }

    def _values(self, scores: IntArray, cells: IntArray) -> dict[MetricName, FloatArray]:
        """What a score counts for in each metric."""
        hits = (level_indices(self.scale, scores, np.ones_like(scores)) == self._levels[cells]).astype(
            np.float64
        )
        chance = self._chance[cells]
        return {
            "mean": scores.astype(np.float64),
            "acc_atom": hits,
            "acc_atom_corrected": (hits - chance) / (1 - chance),
        }

    def _contributions(
        self, judged: Sequence[JudgedSentences]
    ) -> tuple[FloatArray, dict[MetricName, FloatArray]]:
        """What each sentence contributes to its cell's figure, and the judges' value of it.

        As the metrics are averaged: over a response's sentences, a run's responses, a cell's runs and its judges.
        """
        said = [
            (row, judge, score, each.cell, each.run, each.item)
            for row, each in enumerate(judged)
            for judge, score in each.scores
        ]
        row, judge, score, cell, run, item = np.array(said, dtype=np.int64).reshape(-1, 6).T
        weight = 1.0 / _total((cell, judge, run, item), self._counts[row])
        names = [cell]
        for name in (judge, run, item):  # how many judges a cell has, runs a judge, responses a run
            weight /= _different((*names,), name)
            names.append(name)
        weights = np.bincount(row, weights=weight, minlength=len(judged))
        values = {
            metric: np.bincount(row, weights=weight * each, minlength=len(judged)) / weights
            for metric, each in self._values(score, cell).items()
        }
        return np.asarray(weights, dtype=np.float64), values

    def _numbered(self, judged: Sequence[JudgedSentences]) -> tuple[list[tuple[int, str]], IntArray]:
        """Strata as rounds draw from them: the judges' mean score, rounded half up, and within it the task."""
        keys = [
            (
                int(np.floor(sum(score for _, score in each.scores) / len(each.scores) + 0.5)),
                self._cells[each.cell].task,
            )
            for each in judged
        ]
        numbers = {key: n for n, key in enumerate(sorted(set(keys)))}
        return list(numbers), np.array([numbers[key] for key in keys], dtype=np.int64)


def over_dimensions(
    by_dimension: Sequence[Sequence[CalibratedFigure]], unlabelled: Sequence[str]
) -> list[CalibratedFigure]:
    """Figures of all dimensions together: every cell counts the same, as in the results' totals.

    Args:
        by_dimension: Each dimension's totals, or its differences.
        unlabelled: The job's other dimensions; if there is one, no figure is of all.
    """
    groups: dict[tuple[object, ...], list[CalibratedFigure]] = defaultdict(list)
    for each in (figure for figures in by_dimension for figure in figures):
        groups[each.metric, *each.keys.items()].append(each)
    found = []
    for figures in groups.values():
        cells = sum(each.cells for each in figures)
        if not cells:
            found.append(figures[0])
            continue
        parts = [(each.cells / cells, each) for each in figures if each.cells]
        made = _sum(figures[0].keys, parts, cells)
        if unlabelled:
            reason = f"no_label: no sentence on {', '.join(unlabelled)} was drawn and labelled"
            made = replace(made, found=None, reason=reason)
        found.append(made)
    return found


def _sum(
    keys: Mapping[str, str], parts: Sequence[tuple[float, CalibratedFigure]], cells: int
) -> CalibratedFigure:
    """The sum of figures of one metric, each times its weight."""
    known = [(weight, each.found) for weight, each in parts if each.found is not None]
    ends = [sorted((weight * each.bounds[0], weight * each.bounds[1])) for weight, each in parts]
    bounds = sum(low for low, _ in ends), sum(high for _, high in ends)
    made = combined(known) if len(known) == len(parts) else None
    reason = next((each.reason for _, each in parts if each.found is None), NO_LABEL)
    return CalibratedFigure(keys, parts[0][1].metric, made, bounds, cells, reason)


def _error_rates(people: FloatArray, judged: FloatArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sensitivity and specificity in the sample and in every resample, shape (1 + b,); NaN where nothing tells them."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sensitivity = (people * judged) @ drawn / (people @ drawn)
        specificity = ((1 - people) * (1 - judged)) @ drawn / ((1 - people) @ drawn)
    informative = sensitivity + specificity - 1 > LEAST_INFORMATION
    return np.where(informative, sensitivity, np.nan), np.where(informative, specificity, np.nan)


def _drawn_metric(values: FloatArray, labels: int) -> Metric:
    """A metric from its value, which comes first, and those of the resamples."""
    if np.isnan(values[0]):
        return Metric.missing(UNINFORMATIVE)
    interval = percentile_interval(float(values[0]), values[1:], labels, UNIT_RANGE, "labels")
    return Metric.of(float(values[0]), labels).within(interval)


def _groups(names: Sequence[IntArray]) -> IntArray:
    """Which group each place belongs to, from 0."""
    return np.unique(np.stack(names), axis=1, return_inverse=True)[1].reshape(-1)


def _total(names: Sequence[IntArray], counts: FloatArray) -> FloatArray:
    """At each place the sum of the counts of its group."""
    groups = _groups(names)
    return np.asarray(np.bincount(groups, weights=counts)[groups])


def _different(names: Sequence[IntArray], values: IntArray) -> FloatArray:
    """At each place how many different values its group has."""
    groups = _groups(names)
    pairs = np.unique(np.stack((groups, values)), axis=1)
    return np.asarray(np.bincount(pairs[0])[groups].astype(np.float64))
