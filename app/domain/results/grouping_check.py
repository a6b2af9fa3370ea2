"""How far verdicts on several sentences a call agree with those on one: figures of the sample that has both.

They say what grouping does to a judge; the metrics of a job are made of its grouped verdicts alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pydantic import Field

from app.domain.contract import Answer, Number
from app.domain.instruments.dimension import Scale
from app.domain.judging.grouped_reply import USABLE
from app.domain.judging.grouping import Grouping
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


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence that one judge has judged both ways.

    Attributes:
        judge: The judge's label.
        task: Id of the task that the response belongs to.
        scale: Of the dimension that was judged.
        level: The persona's level on it.
        response: Which response it is from.
        grouped: The verdict with other sentences in the same call; always one that counts.
        alone: The verdict on the sentence alone, whatever it is.
        suspicious: Whether the grouped verdict is doubtful (:mod:`app.domain.judging.prompt_injection`).
    """

    judge: str
    task: str
    scale: Scale
    level: str
    response: Position
    grouped: Verdict
    alone: Verdict
    suspicious: bool = False


class JudgingAgreement(Answer):
    """How far one judge's verdicts agree, over all tasks (`task` is `null`) or in one; each n counts sentences."""

    judge: str
    task: str | None
    scale: dict[str, int] = Field(
        description="`minimum` and `maximum`; dimensions with another have a row of their own."
    )
    sentences: int = Field(description="Judged both ways.")
    responses: int
    left_out: int = Field(description="Without a readable verdict alone; in none of the figures.")
    suspicious: int | None = Field(
        None,
        description="Whose grouped verdict has a `suspicion`; in all of the figures. Missing in results from before it was counted.",
    )
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric = Field(description="Grouped minus alone, in points of the scale.")
    quadratic_kappa: Metric
    acc_grouped: Metric = Field(description="Share of the sentences scored in a group that are in character.")
    acc_alone: Metric
    acc_difference: Metric


CHECK_METRICS = tuple(
    name for name, field in JudgingAgreement.model_fields.items() if field.annotation is Metric
)


class JudgingCheck(Answer):
    """A sample's verdicts on several sentences a call beside those on one. Its verdicts alone are in no other figure."""

    sentences_per_call: int
    sample: dict[str, Number] = Field(
        description="`share` and `minimum` as asked for, the `responses` drawn, and how many they were `drawn_from`."
    )
    responses: int = Field(description="With sentences judged both ways; refusals have none.")
    sentences: int
    asked_alone: dict[str, int] = Field(
        description="Sentences whose part of a reply about several could not be used, by what became of it."
    )
    agreement: list[JudgingAgreement]


class CheckedSentences:
    """Takes the sentences that were judged both ways as they are read, and keeps of them how often what was found.

    What it keeps is bounded by the number of judges, tasks and :data:`MOST_CLUSTERS`, however many sentences there are.
    """

    def __init__(self) -> None:
        self._groups: dict[_GroupKey, _Group] = defaultdict(_Group)
        self._last: Position | None = None
        self._responses = 0

    def add(self, sentence: CheckedSentence) -> None:
        """Takes a sentence. Those of a response come one after another, the responses always in the same order."""
        if sentence.response != self._last:
            self._last = sentence.response
            self._responses += 1
        for task in ("", sentence.task):
            key = sentence.judge, task, sentence.scale.minimum, sentence.scale.maximum
            self._groups[key].add(sentence, self._responses)

    def check(self, grouping: Grouping, asked_alone: Mapping[str, int]) -> JudgingCheck:
        """How far the two ways agree.

        Args:
            grouping: How the job groups sentences.
            asked_alone: Sentences whose group's reply could not be used for them, by what became of it.
        """
        clusters = min(self._responses, MOST_CLUSTERS)
        weights = cluster_weights(grouping.seed, ("judging check",), clusters)
        return JudgingCheck(
            sentences_per_call=grouping.sentences,
            sample={
                "share": grouping.check_share,
                "minimum": grouping.check_minimum,
                "responses": grouping.checked,
                "drawn_from": grouping.drawn_from,
            },
            responses=self._responses,
            sentences=sum(group.sentences for key, group in self._groups.items() if not key[1]),
            asked_alone={
                status: asked_alone.get(status, 0) for status in ("unparsed", "refused", "failed", "filtered")
            },
            agreement=[_agreement(key, self._groups[key], weights) for key in sorted(self._groups)],
        )


_GroupKey = tuple[str, str, int, int]
"""Judge, task (empty for all of them), and the ends of the scale."""

_Finding = tuple[int, int | None, int | None, bool, bool | None, bool | None]
"""What was found of a sentence with a readable verdict of both ways: its cluster, the scores in a group and alone, whether the
verdicts are the same, and whether each score lies in the level."""


@dataclass(slots=True)
class _Group:
    """One judge's sentences on scales of one range, of a task or of all."""

    findings: Counter[_Finding] = field(default_factory=Counter)
    sentences: int = 0
    suspicious: int = 0
    responses: int = 0
    last: int = 0

    def add(self, sentence: CheckedSentence, response: int) -> None:
        """Takes a sentence of the ``response``-th response, from 1."""
        self.sentences += 1
        self.suspicious += sentence.suspicious
        if response != self.last:
            self.last = response
            self.responses += 1
        grouped, alone = sentence.grouped, sentence.alone
        if alone.status in USABLE:
            cluster = (response - 1) % MOST_CLUSTERS
            hits = _hit(sentence, grouped), _hit(sentence, alone)
            self.findings[cluster, grouped.score, alone.score, grouped == alone, *hits] += 1


def _hit(sentence: CheckedSentence, verdict: Verdict) -> bool | None:
    """Whether a score lies in the level; ``None`` without one."""
    return None if verdict.score is None else sentence.scale.level_of(verdict.score) == sentence.level


def _agreement(key: _GroupKey, group: _Group, weights: FloatArray) -> JudgingAgreement:
    """The figures of a group.

    Args:
        key: Whose it is.
        group: With at least one sentence.
        weights: Shape (clusters, b); responses are what is resampled.
    """
    judge, task, minimum, maximum = key
    width = float(maximum - minimum)
    rows = [(*finding, n) for finding, n in group.findings.items()]
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), 7)  # NaN where something does not exist
    places, grouped, alone, same, grouped_hits, alone_hits, counts = table.T
    sample = _Sample(places.astype(np.int64), counts, weights)
    scored = ~np.isnan(grouped) & ~np.isnan(alone)
    joint, first, second = sample.of(scored), grouped[scored], alone[scored]
    return JudgingAgreement(
        judge=judge,
        task=task or None,
        scale={"minimum": minimum, "maximum": maximum},
        sentences=group.sentences,
        responses=group.responses,
        left_out=group.sentences - sample.size,
        suspicious=group.suspicious,
        exact_agreement=sample.mean(same, (0.0, 1.0), NO_SENTENCE),
        mean_absolute_difference=joint.mean(np.abs(first - second), (0.0, width), NO_SCORE),
        mean_difference=joint.mean(first - second, (-width, width), NO_SCORE),
        quadratic_kappa=joint.kappa(first, second),
        **_accuracies(sample, grouped_hits, alone_hits),
    )


def _accuracies(sample: "_Sample", grouped_hits: FloatArray, alone_hits: FloatArray) -> dict[str, Metric]:
    """Both shares in level, each over what that way scored, and their difference."""
    samples = [sample.of(~np.isnan(hits)) for hits in (grouped_hits, alone_hits)]
    known = [hits[~np.isnan(hits)] for hits in (grouped_hits, alone_hits)]
    grouped, alone = (
        part.mean(hits, (0.0, 1.0), NO_SCORE_ALONE) for part, hits in zip(samples, known, strict=True)
    )
    found = {"acc_grouped": grouped, "acc_alone": alone}
    if grouped.value is None or alone.value is None:
        return found | {"acc_difference": Metric.missing(NO_SCORE_ALONE)}
    of_grouped, of_alone = (part.draws(hits) for part, hits in zip(samples, known, strict=True))
    difference = Metric.of(grouped.value - alone.value, sample.size)
    return found | {"acc_difference": sample.within(difference, of_grouped - of_alone, (-1.0, 1.0))}


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
