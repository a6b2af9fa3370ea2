"""How far verdicts on several sentences a call agree with those on one: figures of the sample that has both.

They say what grouping does to a judge; the metrics of a job are made of its grouped verdicts alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.dimension import Scale
from app.domain.grouped_reply import USABLE
from app.domain.grouping import Grouping
from app.domain.metrics.metric import FloatArray, IntArray, Metric, metric_json
from app.domain.statistics.agreement import kappa_draws, quadratic_kappa
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws
from app.domain.verdict import Verdict

Json = dict[str, object]

CHECK_METRICS = (
    "exact_agreement",
    "mean_absolute_difference",
    "mean_difference",
    "quadratic_kappa",
    "acc_grouped",
    "acc_alone",
    "acc_difference",
)

COUNTS = ("sentences", "responses", "left_out", "suspicious")

MOST_CLUSTERS = 1_000
"""More responses are resampled in so many parts: memory stays bounded, and an interval gains nothing beyond."""

NO_SENTENCE = "no_checked_sentence: no sentence has a readable verdict of both ways"
NO_SCORE = "no_joint_score: no sentence was scored both ways"
NO_SCORE_ALONE = "no_scored_sentence: one of the two ways scored no sentence"


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence that one judge has judged both ways.

    Attributes:
        judge: The judge's label.
        task: Id of the task that the response belongs to.
        scale: Of the dimension that was judged.
        level: The persona's level on it.
        response: (cell, run, item).
        grouped: The verdict with other sentences in the same call; always one that counts.
        alone: The verdict on the sentence alone, whatever it is.
        suspicious: Whether the grouped verdict is doubtful (:mod:`app.domain.injection`).
    """

    judge: str
    task: str
    scale: Scale
    level: str
    response: tuple[int, int, int]
    grouped: Verdict
    alone: Verdict
    suspicious: bool = False


@dataclass(frozen=True, slots=True)
class CheckFigures:
    """How far the two ways agree. Each metric's n is the number of sentences that it was taken over.

    Attributes:
        sentences: Sentences judged both ways.
        responses: Responses that they are from.
        left_out: Sentences without a readable verdict alone; they are in none of the metrics.
        suspicious: Sentences whose grouped verdict is doubtful; they are in all of the metrics.
        exact_agreement: Share with the same score, or found not applicable both ways, 0–1.
        mean_absolute_difference: Of those scored both ways, in points of the scale; 0 is perfect.
        mean_difference: Grouped minus alone, in points.
        quadratic_kappa: Cohen's κ with quadratic weights, −1–1; 0 is chance, 1 perfect.
        acc_grouped: Share of the sentences scored in a group that lie in the persona's level, 0–1.
        acc_alone: The same of those scored alone.
        acc_difference: Grouped minus alone, −1–1.
    """

    sentences: int
    responses: int
    left_out: int
    suspicious: int
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric
    quadratic_kappa: Metric
    acc_grouped: Metric
    acc_alone: Metric
    acc_difference: Metric


def judging_check(
    grouping: Grouping, sentences: Sequence[CheckedSentence], asked_alone: Mapping[str, int]
) -> Json:
    """The check in the results' form.

    Args:
        grouping: How the job groups sentences.
        sentences: Everything that was judged both ways, in any order.
        asked_alone: Sentences whose group's reply could not be used for them, by what became of it.
    """
    places = {found: n % MOST_CLUSTERS for n, found in enumerate(sorted({s.response for s in sentences}))}
    weights = cluster_weights(grouping.seed, ("judging check",), min(len(places), MOST_CLUSTERS))
    groups: dict[tuple[str, str, int, int], list[CheckedSentence]] = defaultdict(list)
    for each in sentences:
        for task in ("", each.task):
            groups[each.judge, task, each.scale.minimum, each.scale.maximum].append(each)
    return {
        "sentences_per_call": grouping.sentences,
        "sample": {
            "share": grouping.check_share,
            "minimum": grouping.check_minimum,
            "responses": grouping.checked,
            "drawn_from": grouping.drawn_from,
        },
        "responses": len(places),
        "sentences": len(sentences),
        "asked_alone": {status: asked_alone.get(status, 0) for status in ("unparsed", "refused", "failed")},
        "agreement": [
            {"judge": judge, "task": task or None, "scale": {"minimum": minimum, "maximum": maximum}}
            | _figures_json(check_figures(found, [places[s.response] for s in found], weights))
            for (judge, task, minimum, maximum), found in sorted(groups.items())
        ],
    }


def _figures_json(figures: CheckFigures) -> Json:
    metrics = {name: metric_json(getattr(figures, name)) for name in CHECK_METRICS}
    counts = {name: getattr(figures, name) for name in COUNTS}
    return counts | metrics


def check_figures(
    sentences: Sequence[CheckedSentence], clusters: Sequence[int], weights: FloatArray
) -> CheckFigures:
    """The figures of one judge's sentences on scales of one range.

    Args:
        sentences: At least one.
        clusters: Which cluster each belongs to; responses are what is resampled.
        weights: Shape (clusters, b).
    """
    usable = [s.alone.status in USABLE for s in sentences]
    pairs = _Pairs([s for s, kept in zip(sentences, usable, strict=True) if kept])
    places = np.asarray([c for c, kept in zip(clusters, usable, strict=True) if kept], dtype=np.int64)
    sample = _Sample(places, weights)
    joint = sample.of(pairs.joint)
    first, second = pairs.grouped[pairs.joint], pairs.alone[pairs.joint]
    width = float(sentences[0].scale.width)
    kappa = quadratic_kappa(first, second)
    return CheckFigures(
        sentences=len(sentences),
        responses=len({s.response for s in sentences}),
        left_out=len(sentences) - len(pairs.same),
        suspicious=sum(s.suspicious for s in sentences),
        exact_agreement=sample.mean(pairs.same, (0.0, 1.0), NO_SENTENCE),
        mean_absolute_difference=joint.mean(np.abs(first - second), (0.0, width), NO_SCORE),
        mean_difference=joint.mean(first - second, (-width, width), NO_SCORE),
        quadratic_kappa=joint.within(kappa, kappa_draws(first, second, joint.draws), (-1.0, 1.0))
        if len(first)
        else Metric.missing(NO_SCORE),
        **_accuracies(pairs, sample),
    )


class _Pairs:
    """Verdicts of both ways as arrays; NaN where a sentence has no score."""

    def __init__(self, sentences: Sequence[CheckedSentence]) -> None:
        self.grouped = np.asarray([_score(s.grouped) for s in sentences], dtype=np.float64)
        self.alone = np.asarray([_score(s.alone) for s in sentences], dtype=np.float64)
        self.same = np.asarray([s.grouped == s.alone for s in sentences], dtype=np.float64)
        self.joint = ~np.isnan(self.grouped) & ~np.isnan(self.alone)
        self.grouped_hits = np.asarray([_hit(s, s.grouped) for s in sentences], dtype=np.float64)
        self.alone_hits = np.asarray([_hit(s, s.alone) for s in sentences], dtype=np.float64)


def _score(verdict: Verdict) -> float:
    return np.nan if verdict.score is None else float(verdict.score)


def _hit(sentence: CheckedSentence, verdict: Verdict) -> float:
    """Whether a score lies in the level; NaN without one."""
    if verdict.score is None:
        return np.nan
    return float(sentence.scale.level_of(verdict.score) == sentence.level)


def _accuracies(pairs: _Pairs, sample: "_Sample") -> dict[str, Metric]:
    """Both shares in level, each over what that way scored, and their difference."""
    grouped, alone = (
        sample.of(~np.isnan(hits)).mean(hits[~np.isnan(hits)], (0.0, 1.0), NO_SCORE_ALONE)
        for hits in (pairs.grouped_hits, pairs.alone_hits)
    )
    found = {"acc_grouped": grouped, "acc_alone": alone}
    if grouped.value is None or alone.value is None:
        return found | {"acc_difference": Metric.missing(NO_SCORE_ALONE)}
    draws = sample.draws(pairs.grouped_hits) - sample.draws(pairs.alone_hits)
    difference = Metric(grouped.value - alone.value, len(pairs.same))
    return found | {"acc_difference": sample.within(difference, draws, (-1.0, 1.0))}


class _Sample:
    """Sentences' clusters and their resamples."""

    def __init__(self, places: IntArray, weights: FloatArray) -> None:
        self.places = places
        self.weights = weights

    def of(self, kept: npt.NDArray[np.bool_]) -> "_Sample":
        """That of some of the sentences."""
        return _Sample(self.places[kept], self.weights)

    def draws(self, values: FloatArray) -> FloatArray:
        """The mean of values in every resample, over those that are not NaN."""
        known = ~np.isnan(values)
        size = len(self.weights)
        sums = np.bincount(self.places[known], weights=values[known], minlength=size).astype(np.float64)
        counts = np.bincount(self.places[known], minlength=size).astype(np.float64)
        return ratio_draws(sums, counts, self.weights)

    def mean(self, values: FloatArray, bounds: tuple[float, float], reason: str) -> Metric:
        """The mean of values with its interval; missing for ``reason`` where there are none."""
        metric = Metric.average(values, reason)
        return self.within(metric, self.draws(values), bounds) if len(values) else metric

    def within(self, metric: Metric, draws: FloatArray, bounds: tuple[float, float]) -> Metric:
        """A metric with its interval over responses."""
        if metric.value is None:
            return metric
        clusters = len(np.unique(self.places))
        return metric.within(percentile_interval(metric.value, draws, clusters, bounds, "responses"))
