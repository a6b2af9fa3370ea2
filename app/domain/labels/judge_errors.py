"""What a judge gives to sentences that people give which score, and whether that depends on level, model or length."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.domain.labels.contract import By, JudgeErrors
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

Flags = npt.NDArray[np.bool_]
NO_SCORE = "no_score: people gave none of these sentences this score"
NO_OTHER = "no_other: there is nothing else to compare with"


class JudgedLabel(NamedTuple):
    """A sentence that people and a judge scored.

    Attributes:
        people: Each annotator's score; at least one.
        judged: The judge's.
        stands_for: For how many sentences of the job it stands.
        response: Which text it is of.
        level: The persona's level.
        model: The model.
        length: How many scored sentences its text has.
    """

    people: Sequence[int]
    judged: int
    stands_for: float
    response: tuple[int, int, int]
    level: str
    model: str
    length: int


def judge_errors(
    judge: str, labels: Sequence[JudgedLabel], scores: Sequence[int], seed: int
) -> list[JudgeErrors]:
    """The errors on all, then by level, model and length. No label, no errors.

    Lengths are ``short`` up to the median of the labelled texts, and ``long``. An interval of ``from_others`` without 0 is
    differential item functioning (Holland and Wainer, 1993).

    Args:
        judge: The judge's label.
        labels: In any order.
        scores: Of the scale.
        seed: Of the resampling of texts.
    """
    if not labels:
        return []
    table = _Table(judge, sorted(labels, key=lambda each: each.response), seed)
    middle = float(np.median([each.length for each in labels]))
    keys: tuple[tuple[By, Callable[[JudgedLabel], str]], ...] = (
        ("level", lambda each: each.level),
        ("model", lambda each: each.model),
        ("length", lambda each: "short" if each.length <= middle else "long"),
    )
    found = [table.errors(None, None, np.ones(len(table.labels), dtype=bool), scores)]
    for by, key_of in keys:
        of = np.array([key_of(each) for each in table.labels])
        found += [table.errors(by, key, of == key, scores) for key in np.unique(of).tolist()]
    return found


class _Table:
    """Labels with the resamples of their texts."""

    def __init__(self, judge: str, labels: Sequence[JudgedLabel], seed: int) -> None:
        self._judge = judge
        self.labels = labels
        places = {response: n for n, response in enumerate(sorted({each.response for each in labels}))}
        self._texts: IntArray = np.array([places[each.response] for each in labels], dtype=np.int64)
        self._weights = cluster_weights(seed, ("judge_errors",), len(places))[self._texts]
        self._stands_for = np.array([each.stands_for for each in labels])

    def errors(self, by: By | None, key: str | None, own: Flags, scores: Sequence[int]) -> JudgeErrors:
        """The errors on those labels that are the group's ``own``."""
        apart = np.array([each.judged - sum(each.people) / len(each.people) for each in self.labels])
        same = np.array([each.people.count(each.judged) / len(each.people) for each in self.labels])
        width = float(scores[-1] - scores[0])
        everywhere = np.ones(len(self.labels))
        value, draws = self._ratio(apart, own * everywhere)
        rest, rest_draws = self._ratio(apart, ~own * everywhere)
        bounds = (-2 * width, 2 * width)
        others = self._metric(value - rest, draws - rest_draws, own, bounds, NO_OTHER, other=~own)
        return JudgeErrors(
            judge=self._judge,
            by=by,
            key=key,
            mean_difference=self._metric(value, draws, own, (-width, width), NO_SCORE),
            exact_agreement=self._metric(*self._ratio(same, own * everywhere), own, (0.0, 1.0), NO_SCORE),
            from_others=others,
            confusion={score: self._row(score, own, scores) for score in scores},
        )

    def _row(self, score: int, own: Flags, scores: Sequence[int]) -> dict[int, Metric]:
        share = own * np.array([each.people.count(score) / len(each.people) for each in self.labels])
        judged = np.array([each.judged for each in self.labels])
        return {
            other: self._metric(
                *self._ratio((judged == other).astype(np.float64), share), share > 0, (0.0, 1.0), NO_SCORE
            )
            for other in scores
        }

    def _ratio(self, values: FloatArray, shares: FloatArray) -> tuple[float, FloatArray]:
        """A weighted mean, and that of every resample."""
        counts = shares * self._stands_for
        whole = ratio_draws(values * counts, counts, np.ones((len(counts), 1)))
        return float(whole[0]), ratio_draws(values * counts, counts, self._weights)

    def _metric(
        self,
        value: float,
        draws: FloatArray,
        own: Flags,
        bounds: tuple[float, float],
        reason: str,
        other: Flags | None = None,
    ) -> Metric:
        """A figure of the group's ``own`` labels, or their difference from ``other`` ones, of which either may be too few."""
        if np.isnan(value):
            return Metric(value=None, n=0, reason=reason, ci95_reason=reason)
        sides = (own,) if other is None else (own, other)
        texts = min(len(np.unique(self._texts[side])) for side in sides)
        interval = percentile_interval(value, draws, texts, bounds, "responses")
        return Metric.of(value, int(own.sum())).within(interval)
