"""What a mean of judged sentences would be if people had said all of it, from what they said of a stratified sample.

Prediction-powered inference (Angelopoulos, Bates et al., 2023; PPI++: Angelopoulos, Duchi and Zrnic, 2023; stratified: Fisch
et al., 2024): the judge's mean over all sentences, corrected by what the sample shows between people and judge. As every
sentence is judged and the sample's design is known, the variance is the design's (Cochran, 1977, chapters 5 and 6): it
takes nothing for granted of the judge, of sentences of one response, or of strata.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.statistics.resampling import clusters_that_agree, student, unanimous

FEWEST_LABELS = 20
"""With fewer, a stratum's spread is mostly guessed."""
FEWEST_OF_STRATUM = 4
"""Strata with fewer labels are put together with the next: two or three labels that agree would say there is no spread."""
_NOTHING = 10**-12
_NORMAL = 1.959963984540054


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """All judged sentences of a group, in rows of those that are alike; strata are numbered so that similar ones are near.

    Attributes:
        strata: Shape (m,): from 0.
        counts: Shape (m,): how many sentences a row stands for.
        weights: Shape (m,): what each of them contributes to the mean; with the counts they add up to 1.
        predicted: Shape (m,): the judge's value of each.
    """

    strata: IntArray
    counts: FloatArray
    weights: FloatArray
    predicted: FloatArray

    @property
    def judged(self) -> float:
        """The judge's mean."""
        return float(self.counts * self.weights @ self.predicted)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Those of the sentences that people have labelled.

    Attributes:
        strata: Shape (n,): as in the population.
        stands_for: Shape (n,): the inverse of the chance with which each was drawn.
        weights: Shape (n,): as in the population.
        predicted: Shape (n,): the judge's values.
        said: Shape (n,): what people said, NaN where it is that the sentence is not applicable.
    """

    strata: IntArray
    stands_for: FloatArray
    weights: FloatArray
    predicted: FloatArray
    said: FloatArray


class Stratum(NamedTuple):
    """What a stratum, or some together, contribute to the variance.

    Attributes:
        size: Its sentences.
        labels: How many of them are labelled.
        spread: The standard deviation of what a label contributes, were it the stratum's only one.
        third: The third cumulant of its part of the estimate, were its sentences endless.
        fourth: How much more its part's variance varies from sample to sample than if labels were normally distributed.
    """

    size: float
    labels: int
    spread: float
    third: float = 0.0
    fourth: float = 0.0

    @property
    def variance(self) -> float:
        """Of its part of the estimate."""
        return self.spread**2 * max(0.0, 1 / self.labels - 1 / self.size)

    @property
    def left(self) -> float:
        """The share of its sentences without a label."""
        return 1 - self.labels / self.size

    def with_labels(self, times: float) -> "Stratum":
        """About as it would be with so many times the labels, were the others like these."""
        labels = round(min(self.size, self.labels * times))
        return self._replace(labels=labels, third=self.third / times**2, fourth=self.fourth / times**3)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """An estimate from the judge and labels.

    Attributes:
        value: The mean as people would give it.
        judged: As the judge gives it.
        labels: The labels behind the correction.
        power: λ of PPI++: 1 takes the judge as it is, 0 only the labels.
        strata: As they were put together.
    """

    value: float
    judged: float
    labels: int
    power: float
    strata: tuple[Stratum, ...]

    @property
    def variance(self) -> float:
        """Of the estimate, were other sentences drawn to be labelled."""
        return sum(stratum.variance for stratum in self.strata)

    def interval(self, bounds: tuple[float, float]) -> Interval:
        """For these very texts: what would be there if people labelled all of them."""
        if self.labels < FEWEST_LABELS:
            return too_few_labels(self.labels)
        if all(each.labels >= each.size for each in self.strata):
            return Interval.around(self.value, self.value, self.value, bounds)
        if self.unanimous:
            return unanimous(self.value, self.clusters, bounds)
        half = self.half_width
        return Interval.around(self.value, self.value - half, self.value + half, bounds)

    @property
    def unanimous(self) -> bool:
        """Whether no label says otherwise than the others, so that their spread says nothing of the rest."""
        return self.variance < _NOTHING

    @property
    def _spread_is_unknown(self) -> bool:
        return max(each.spread for each in self.strata) ** 2 < _NOTHING

    @property
    def clusters(self) -> int:
        """How many were drawn apart from each other."""
        return self.labels

    @property
    def half_width(self) -> float:
        """By Student's t with Welch and Satterthwaite's degrees of freedom."""
        return student(_freedom(self.strata)) * math.sqrt(self.variance)

    def interval_of_few(self, bounds: tuple[float, float]) -> Interval:
        """As :meth:`interval` where few labels differ from the others, so that their spread is known less well.

        Satterthwaite's (1946) degrees of freedom are twice the variance's square by its own variance. That is larger than with
        normally distributed labels by the fourth cumulant. The middle lies beside the estimate by Johnson's (1978) term. On the side
        to which the labels that differ lean there is the variance of one more of them, as in the score interval of a count k, which
        has k + 1.96²/4 there: where few are found, there are often more, and seldom fewer.
        """
        interval = self.interval(bounds)
        if interval.ends is None or self.unanimous:
            return interval
        variance, fourth = self.variance, max(0.0, sum(each.fourth for each in self.strata))
        t = student(max(1.0, variance**2 / (_varying(self.strata) + fourth / 2)))
        leaning = [each.third * each.left for each in self.strata]
        middle = self.value + math.fsum(
            third * (2 * each.left - 1) for third, each in zip(leaning, self.strata, strict=True)
        ) / (6 * variance)
        near, far = t * math.sqrt(variance), t * math.sqrt(variance + fourth / variance)
        low, high = (near, far) if math.fsum(leaning) > 0 else (far, near)
        return Interval.around(self.value, middle - low, middle + high, bounds)

    def with_labels(self, labels: int) -> "Calibrated":
        """About as it would be with so many labels, divided over the strata as now, were the others like these."""
        strata = tuple(each.with_labels(labels / self.labels) for each in self.strata)
        return replace(self, labels=labels, strata=strata)

    def labels_for(self, half_width: float, bounds: tuple[float, float]) -> tuple[int, int]:
        """How many labels an interval of ± ``half_width`` needs: divided over the strata as now, and as well as can be.

        The latter is Neyman's (1934) division: in proportion to a stratum's size times its spread. Where all labels agree,
        so that there is no spread, both are as many that agree as make the interval so narrow.
        """
        most = math.ceil(sum(each.size for each in self.strata))
        if self._spread_is_unknown:
            needed = min(max(clusters_that_agree(half_width, bounds), FEWEST_LABELS), most)
            return needed, needed
        wanted = (half_width / _NORMAL) ** 2
        squares = sum(each.spread**2 / each.size for each in self.strata)
        as_now = self.labels * sum(each.spread**2 / each.labels for each in self.strata) / (wanted + squares)
        best = sum(each.spread for each in self.strata) ** 2 / (wanted + squares)
        return min(math.ceil(as_now), most), min(math.ceil(best), most)


def too_few_labels(labels: int) -> Interval:
    """No interval, because too few sentences are labelled."""
    return Interval.missing(
        f"too_few_labels: {labels} of these sentences were drawn and labelled; an interval needs {FEWEST_LABELS}"
    )


def calibrated(population: Population, sample: Sample) -> Calibrated | None:
    """The mean over the sentences that people find applicable; ``None`` where they labelled none of those.

    In each stratum the mean difference of what people and judge say, weighted as the mean weights its sentences, is taken
    for all of the stratum. λ, how far the judge is believed, makes the variance least (PPI++).
    """
    groups = _groups(population, sample)
    if not groups or np.isnan(sample.said).all():
        return None
    power = 1.0
    for _ in range(2):  # λ depends on the mean only where something is not applicable
        parts = [_part(group, power) for group in groups]
        below = sum(part.applicable for part in parts)
        if below <= _NOTHING:
            return None
        value = (power * population.judged + sum(part.corrections for part in parts)) / below
        power = _power(groups, value)
    parts = [_part(group, power) for group in groups]
    value = (power * population.judged + sum(part.corrections for part in parts)) / below
    strata = tuple(_stratum(group, value, power, below) for group in groups)
    return Calibrated(value, population.judged, len(sample.said), power, steadied(strata))


def combined(parts: Sequence[tuple[float, Calibrated]]) -> Calibrated:
    """The sum of groups' means, each times its weight; their labels are drawn apart, so their variances add up."""
    return Calibrated(
        value=sum(weight * each.value for weight, each in parts),
        judged=sum(weight * each.judged for weight, each in parts),
        labels=sum(each.labels for _, each in parts),
        power=min(each.power for _, each in parts),
        strata=tuple(
            stratum._replace(
                spread=abs(weight) * stratum.spread,
                third=weight**3 * stratum.third,
                fourth=weight**4 * stratum.fourth,
            )
            for weight, each in parts
            for stratum in each.strata
        ),
    )


def beyond_texts(found: Calibrated, judged: Interval, bounds: tuple[float, float]) -> Interval:
    """The interval for more than these texts: the judge's own, moved to the estimate and widened by the labels' error.

    Two independent errors' squares add up at either end (MOVER; Zou and Donner, 2008).

    Args:
        found: The estimate.
        judged: The interval about the judge's mean, such as over other personas.
        bounds: The mean's range.
    """
    inner = found.interval(bounds)
    if inner.ends is None or judged.ends is None:
        return inner if inner.ends is None else judged
    low = math.hypot(found.value - inner.ends[0], found.judged - judged.ends[0])
    high = math.hypot(inner.ends[1] - found.value, judged.ends[1] - found.judged)
    return Interval.around(found.value, found.value - low, found.value + high, bounds)


class _Group(NamedTuple):
    """A stratum, or some put together: its size, its share of the mean, and its labelled sentences.

    Attributes:
        shares: Each labelled sentence's part of what the group contributes; they add up to the group's weight.
    """

    size: float
    shares: FloatArray
    predicted: FloatArray
    said: FloatArray

    @property
    def applicable(self) -> FloatArray:
        return (~np.isnan(self.said)).astype(np.float64)


class _Part(NamedTuple):
    corrections: float
    applicable: float


def _groups(population: Population, sample: Sample) -> list[_Group]:
    """The strata in their order, those with few labels together with the next, the last ones with those before."""
    count = int(population.strata.max()) + 1
    sizes = np.bincount(population.strata, weights=population.counts, minlength=count)
    weights = np.bincount(population.strata, weights=population.counts * population.weights, minlength=count)
    labels = np.bincount(sample.strata, minlength=count)
    together: list[list[int]] = [[]]
    for stratum in np.flatnonzero(sizes).tolist():
        if together[-1] and labels[together[-1]].sum() >= min(FEWEST_OF_STRATUM, sizes[together[-1]].sum()):
            together.append([])
        together[-1].append(stratum)
    if len(together) > 1 and labels[together[-1]].sum() < min(FEWEST_OF_STRATUM, sizes[together[-1]].sum()):
        last = together.pop()
        together[-1] += last
    found = []
    for strata in together:
        own = np.isin(sample.strata, strata)
        if not own.any():
            return []
        stands = sample.stands_for[own] * sample.weights[own]
        shares = stands / stands.sum() * weights[strata].sum()
        found.append(_Group(float(sizes[strata].sum()), shares, sample.predicted[own], sample.said[own]))
    return found


def _part(group: _Group, power: float) -> _Part:
    people = np.nan_to_num(group.said) - power * group.predicted
    return _Part(float(group.shares @ people), float(group.shares @ group.applicable))


def _residuals(group: _Group, values: FloatArray) -> FloatArray:
    """What each label adds to the group's part beyond its mean; they add up to 0."""
    return np.asarray(group.shares * (values - group.shares @ values / group.shares.sum()))


def _people(group: _Group, value: float) -> FloatArray:
    """What people said, as the ratio of a sum to the number applicable is linearised."""
    return _residuals(group, np.nan_to_num(group.said) - value * group.applicable)


def _power(groups: list[_Group], value: float) -> float:
    above = below = 0.0
    for group in groups:
        labels = len(group.said)
        if labels > 1:
            judged = _residuals(group, group.predicted)
            scale = labels / (labels - 1) * max(0.0, 1 - labels / group.size)
            above += scale * float(_people(group, value) @ judged)
            below += scale * float(judged @ judged)
    return min(1.0, max(0.0, above / below)) if below > _NOTHING else 1.0


def _stratum(group: _Group, value: float, power: float, applicable: float) -> Stratum:
    """The delete-one jackknife's spread: with sentences that count for more than others, that of the ratio is too small."""
    labels = len(group.said)
    left = (_people(group, value) - power * _residuals(group, group.predicted)) / applicable
    rest = left / (1 - group.shares / group.shares.sum()) if labels > 1 else left
    squares = float(rest @ rest) * (labels - 1) / labels
    return Stratum(
        size=group.size,
        labels=labels,
        spread=math.sqrt(squares * labels),
        third=_third(rest),
        fourth=_fourth(left, group.size),
    )


def _third(rest: FloatArray) -> float:
    """The third cumulant of the sum of what labels add, as the jackknife tells it."""
    labels = len(rest)
    if labels <= 2:  # noqa: PLR2004 - two tell no asymmetry
        return 0.0
    return float((rest**3).sum()) * (labels - 1) ** 2 / labels / (labels - 2)


def _fourth(left: FloatArray, size: float) -> float:
    """The fourth cumulant of what labels add, by Fisher's (1930) k-statistic, as it is in the variance of their sum's variance."""
    n = len(left)
    if n <= 3:  # noqa: PLR2004 - three tell none
        return 0.0
    squares, fourths = float((left**2).sum()), float((left**4).sum())
    cumulant = n**2 * ((n + 1) * fourths - 3 * (n - 1) / n * squares**2) / ((n - 1) * (n - 2) * (n - 3))
    return cumulant * (1 - n / size) ** 3


def steadied(strata: tuple[Stratum, ...]) -> tuple[Stratum, ...]:
    """The strata with their spreads drawn toward the common one by the weight of one label.

    A few labels that agree would else say of a stratum that nobody ever contradicts the judge.
    """
    sizes = sum(each.size for each in strata)
    relative = [each.spread * sizes / each.size for each in strata]
    degrees = [max(0, each.labels - 1) for each in strata]
    if not sum(degrees):
        return strata
    common = sum(n * one**2 for n, one in zip(degrees, relative, strict=True)) / sum(degrees)
    return tuple(
        each._replace(spread=math.sqrt((n * one**2 + common) / (n + 1)) * each.size / sizes)
        for each, n, one in zip(strata, degrees, relative, strict=True)
    )


def _freedom(strata: tuple[Stratum, ...]) -> int:
    return max(1, math.floor(sum(each.variance for each in strata) ** 2 / _varying(strata)))


def _varying(strata: tuple[Stratum, ...]) -> float:
    """Half of the variance that the variance itself has, were labels normally distributed."""
    return sum(each.variance**2 / max(1, each.labels - 1) for each in strata)
