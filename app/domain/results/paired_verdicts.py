"""How far two verdicts of one judge on the same sentences agree, the sentences added up as they are read."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.domain.instruments.dimension import Scale
from app.domain.judging.grouped_reply import USABLE
from app.domain.judging.verdict import Verdict
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.agreement import NO_DISAGREEMENT, kappa_draws
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

MOST_CLUSTERS = 1_000
"""More responses are resampled in so many parts: memory stays bounded, and an interval gains nothing beyond."""

NO_SENTENCE = "no_checked_sentence: no sentence has a readable verdict of both ways"
NO_SCORE = "no_joint_score: no sentence was scored both ways"
NO_SCORE_ALONE = "no_scored_sentence: one of the two ways scored no sentence"


Position = tuple[int, int, int]
"""(cell, run, item): what names a response in its job."""


class Clusters:
    """Numbers the responses, which are what is resampled, as their sentences come: each response's one after another."""

    def __init__(self) -> None:
        self.count = 0
        self._last: Position | None = None

    def number(self, response: Position) -> int:
        """The response's number, from 1."""
        if response != self._last:
            self._last = response
            self.count += 1
        return self.count

    def weights(self, seed: int, name: str) -> FloatArray:
        """How often each is drawn in each resample."""
        return cluster_weights(seed, (name,), min(self.count, MOST_CLUSTERS))


class Pair(NamedTuple):
    """Two verdicts of one judge on one sentence.

    Attributes:
        scale: Of the dimension that was judged.
        level: The persona's level on it.
        first: A verdict that says something: a score, or that there is nothing to score.
        second: The other one, whatever it is.
    """

    scale: Scale
    level: str
    first: Verdict
    second: Verdict

    def hit(self, verdict: Verdict) -> bool | None:
        """Whether a score lies in the level; ``None`` without one."""
        return None if verdict.score is None else self.scale.level_of(verdict.score) == self.level


class PairFigures(NamedTuple):
    """How far the two agree; of the sentences with two readable verdicts."""

    sentences: int
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric
    quadratic_kappa: Metric
    acc_first: Metric
    acc_second: Metric
    acc_difference: Metric


_Finding = tuple[int, int | None, int | None, bool, bool | None, bool | None]
"""What was found of a sentence with a readable verdict of both ways: its cluster, both scores, whether the
verdicts are the same, and whether each score lies in the level."""


@dataclass(slots=True)
class PairedVerdicts:
    """One judge's pairs of verdicts on scales of one range.

    What it keeps is bounded by :data:`MOST_CLUSTERS`, however many sentences there are.
    """

    findings: Counter[_Finding] = field(default_factory=Counter)
    sentences: int = 0
    responses: int = 0
    last: int = 0

    def add(self, pair: Pair, response: int) -> None:
        """Takes a sentence of the ``response``-th response, from 1."""
        self.sentences += 1
        if response != self.last:
            self.last = response
            self.responses += 1
        self.count(pair, (response - 1) % MOST_CLUSTERS, 1)

    def count(self, pair: Pair, cluster: int, sentences: int) -> None:
        """Counts the verdicts of sentences that are alike, of one cluster, if both are readable."""
        first, second = pair.first, pair.second
        if second.status in USABLE:
            hits = pair.hit(first), pair.hit(second)
            self.findings[cluster, first.score, second.score, first == second, *hits] += sentences

    def figures(self, width: int, weights: FloatArray) -> PairFigures:
        """How far the verdicts agree.

        Args:
            width: Of their scales.
            weights: Shape (clusters, b); responses are what is resampled.
        """
        rows = [(*finding, n) for finding, n in self.findings.items()]
        table = np.asarray(rows, dtype=np.float64).reshape(len(rows), 7)  # NaN where something does not exist
        places, first, second, same, first_hits, second_hits, counts = table.T
        sample = _Sample(places.astype(np.int64), counts, weights)
        scored = ~np.isnan(first) & ~np.isnan(second)
        joint, one, other, most = sample.of(scored), first[scored], second[scored], float(width)
        return PairFigures(
            sample.size,
            sample.mean(same, (0.0, 1.0), NO_SENTENCE),
            joint.mean(np.abs(one - other), (0.0, most), NO_SCORE),
            joint.mean(one - other, (-most, most), NO_SCORE),
            joint.kappa(one, other),
            *_accuracies(sample, first_hits, second_hits),
        )


def _accuracies(
    sample: "_Sample", first_hits: FloatArray, second_hits: FloatArray
) -> tuple[Metric, Metric, Metric]:
    """Both shares in level, each over what that way scored, and their difference."""
    samples = [sample.of(~np.isnan(hits)) for hits in (first_hits, second_hits)]
    known = [hits[~np.isnan(hits)] for hits in (first_hits, second_hits)]
    first, second = (
        part.mean(hits, (0.0, 1.0), NO_SCORE_ALONE) for part, hits in zip(samples, known, strict=True)
    )
    if first.value is None or second.value is None:
        return first, second, Metric.missing(NO_SCORE_ALONE)
    of_first, of_second = (part.draws(hits) for part, hits in zip(samples, known, strict=True))
    difference = Metric.of(first.value - second.value, sample.size)
    return first, second, sample.within(difference, of_first - of_second, (-1.0, 1.0))


class _Sample:
    """Different findings: the cluster of each, how many sentences it is true of, and the clusters' resamples."""

    def __init__(self, places: IntArray, counts: FloatArray, weights: FloatArray) -> None:
        self.places = places
        self.counts = counts
        self.weights = weights

    @property
    def size(self) -> int:
        """How many sentences there are."""
        return int(self.counts.sum())

    def of(self, kept: npt.NDArray[np.bool_]) -> "_Sample":
        """That of some of the findings."""
        return _Sample(self.places[kept], self.counts[kept], self.weights)

    def whole(self, values: FloatArray) -> FloatArray:
        """The mean of the sentences' values, as if it were that of the only resample."""
        return ratio_draws(values * self.counts, self.counts, np.ones((len(values), 1)))

    def draws(self, values: FloatArray) -> FloatArray:
        """The mean of the sentences' values in every resample."""
        size = len(self.weights)
        sums = np.bincount(self.places, weights=values * self.counts, minlength=size).astype(np.float64)
        counts = np.bincount(self.places, weights=self.counts, minlength=size).astype(np.float64)
        return ratio_draws(sums, counts, self.weights)

    def mean(self, values: FloatArray, bounds: tuple[float, float], reason: str) -> Metric:
        """The mean of the sentences' values with its interval; missing for ``reason`` where there are none."""
        if not len(values):
            return Metric.missing(reason)
        metric = Metric.of(float(self.whole(values)[0]), self.size)
        return self.within(metric, self.draws(values), bounds)

    def kappa(self, first: FloatArray, second: FloatArray) -> Metric:
        """Cohen's κ of two scores of each sentence, with quadratic weights, with its interval."""
        if not len(first):
            return Metric.missing(NO_SCORE)
        value = float(kappa_draws(first, second, self.whole)[0])
        if np.isnan(value):
            return Metric.missing(NO_DISAGREEMENT)
        return self.within(Metric.of(value, self.size), kappa_draws(first, second, self.draws), (-1.0, 1.0))

    def within(self, metric: Metric, draws: FloatArray, bounds: tuple[float, float]) -> Metric:
        """A metric with its interval over responses."""
        assert metric.value is not None  # noqa: S101 - only existing ones have draws
        clusters = len(np.unique(self.places))
        return metric.within(percentile_interval(metric.value, draws, clusters, bounds, "responses"))
