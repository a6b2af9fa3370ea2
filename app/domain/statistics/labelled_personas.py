"""A mean of judged answers as people would give it, where people grade some answers of some personas.

Prediction-powered as :mod:`app.domain.statistics.prediction_powered`, for another design: personas are drawn by chance, and
of each some answers to every task; of several models answers to the same questions. So personas are clusters, within which
answers are drawn (two-stage sampling; Cochran, 1977, chapter 11), and errors of two models go together.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.statistics.prediction_powered import Calibrated, Stratum, steadied
from app.domain.statistics.resampling import FEWEST_CLUSTERS, clusters_that_agree

_NOTHING = 10**-12
_NORMAL = 1.959963984540054


class JudgedTask(NamedTuple):
    """A model's answers to one task, those that people graded in rows.

    Attributes:
        judged: The judges' mean over all personas.
        answers: How many answers they have graded.
        personas: Shape (n,): whose answer each row is, by number.
        draws: Shape (n,): which question, the same number for all models that were asked it.
        weights: Shape (n,): what the answer contributes to its persona's mean.
        predicted: Shape (n,): the judges' grade.
        said: Shape (n,): what people gave it.
    """

    judged: float
    answers: int
    personas: IntArray
    draws: IntArray
    weights: FloatArray
    predicted: FloatArray
    said: FloatArray


class _Errors(NamedTuple):
    """What each graded answer of a task adds to an estimate beyond its mean.

    Attributes:
        people: Of what people said.
        judged: Of what the judges did.
    """

    people: FloatArray
    judged: FloatArray


class CalibratedScore(Calibrated):
    """An estimate whose first stratum is the personas; the others are the tasks' answers, of the personas that were drawn."""

    __slots__ = ()

    @property
    def clusters(self) -> int:
        """Personas."""
        return self.strata[0].labels

    def interval(self, bounds: tuple[float, float]) -> Interval:
        """For these very texts: what would be there if people graded all of them."""
        personas = self.strata[0]
        if personas.labels < min(FEWEST_CLUSTERS, personas.size):
            return Interval.missing(
                f"too_few_personas: answers of {personas.labels} were drawn and graded; an interval needs {FEWEST_CLUSTERS}"
            )
        return super().interval(bounds)

    def labels_for(self, half_width: float, bounds: tuple[float, float]) -> tuple[int, int]:
        """How many labels an interval of ± ``half_width`` needs: of more personas, then more of each; twice the same number."""
        most = int(sum(each.size for each in self.strata[1:]))
        if self._spread_is_unknown:
            personas = min(clusters_that_agree(half_width, bounds), math.ceil(self.strata[0].size))
            needed = min(math.ceil(personas * self.labels / self.clusters), most)
            return needed, needed
        wanted = (half_width / _NORMAL) ** 2
        needed = bisect_left(
            range(self.labels // self.clusters, most),
            True,
            key=lambda labels: self._variance(labels) <= wanted,
        )
        found = needed + self.labels // self.clusters
        return found, found

    def _variance(self, labels: int) -> float:
        """With another number of labels."""
        personas, *tasks = self.strata
        share = labels / self.labels
        drawn = min(personas.size, personas.labels * share)
        between = personas.spread**2 * (1 / drawn - 1 / personas.size)
        within = sum(
            each.spread**2 * max(0.0, 1 / (each.labels * share) - 1 / each.size)
            for each in tasks
            if each.labels
        )
        return between + within * drawn / personas.labels


def calibrated_score(personas: int, sides: Sequence[Mapping[str, JudgedTask]]) -> CalibratedScore | None:
    """The mean over tasks as people would give it; of two models the first one's less the other's.

    Args:
        personas: How many there are.
        sides: One model's or two models' tasks, of the same personas.

    Returns:
        ``None`` where of some task no answer is graded.
    """
    if not all(len(task.said) for side in sides for task in side.values()):
        return None
    value = judged = 0.0
    powers, errors = [], []
    for sign, side in zip((1.0, -1.0), sides, strict=False):
        found = [_errors(task, sign / len(side)) for task in side.values()]
        power = _power(list(side.values()), found)
        powers.append(power)
        errors.append([each.people - power * each.judged for each in found])
        judged += sign * float(np.mean([task.judged for task in side.values()]))
        value += sign * float(np.mean([_estimate(task, power) for task in side.values()]))
    labels = sum(len(task.said) for side in sides for task in side.values())
    return CalibratedScore(value, judged, labels, min(powers), _strata(personas, sides, errors))


def _shares(task: JudgedTask) -> FloatArray:
    """What each graded answer counts for in the mean over personas of their means."""
    of_persona = np.bincount(task.personas, weights=task.weights)
    return np.asarray(task.weights / of_persona[task.personas] / np.count_nonzero(of_persona))


def _estimate(task: JudgedTask, power: float) -> float:
    return power * task.judged + float(_shares(task) @ (task.said - power * task.predicted))


def _errors(task: JudgedTask, weight: float) -> _Errors:
    shares = _shares(task)
    return _Errors(*(weight * shares * (values - shares @ values) for values in (task.said, task.predicted)))


def _power(tasks: Sequence[JudgedTask], errors: Sequence[_Errors]) -> float:
    """λ of PPI++, as if all answers were drawn apart: of few personas, their own variance would tell it badly."""
    above = below = 0.0
    for task, each in zip(tasks, errors, strict=True):
        left = max(0.0, 1 - len(task.said) / task.answers)
        above += left * float(each.people @ each.judged)
        below += left * float(each.judged @ each.judged)
    return min(1.0, max(0.0, above / below)) if below > _NOTHING else 1.0


def _strata(
    personas: int, sides: Sequence[Mapping[str, JudgedTask]], errors: Sequence[Sequence[FloatArray]]
) -> tuple[Stratum, ...]:
    """The two stages' parts of the variance: (1 − f) · personas + f · answers, with f the share of personas that were drawn."""
    drawn = min(len({n for task in side.values() for n in task.personas.tolist()}) for side in sides)
    rows = [task.personas for side in sides for task in side.values()]
    between = _spread(rows, [each for own in errors for each in own], drawn)
    answers = []
    for n, task in enumerate(sides[0]):
        own = [side[task] for side in sides]
        labels, size = min(len(each.said) for each in own), min(each.answers for each in own)
        within = _spread_within(own, [each[n] for each in errors], labels)
        answers.append(Stratum(float(size), labels, math.sqrt(drawn / personas) * within))
    return Stratum(float(personas), drawn, between), *steadied(tuple(answers))


def _spread_within(tasks: Sequence[JudgedTask], errors: Sequence[FloatArray], drawn: int) -> float:
    """That of a question within its persona; where some persona has a single one, of any question, which is larger.

    Args:
        tasks: One model's or two models' answers to a task.
        errors: What each answer adds.
        drawn: How many questions there are.
    """
    draws = np.concatenate([task.draws for task in tasks])
    known, place = np.unique(draws, return_inverse=True)
    personas = np.zeros(len(known), dtype=np.int64)
    personas[place] = np.concatenate([task.personas for task in tasks])
    counts = np.bincount(personas)
    if (counts == 1).any():
        return _spread([task.draws for task in tasks], errors, drawn)
    each = np.bincount(place, weights=np.concatenate(errors))
    means = np.bincount(personas, weights=each) / np.maximum(1, counts)
    several = counts[personas]
    beside = (each - means[personas]) * np.sqrt(several / (several - 1))
    return math.sqrt(float(beside @ beside) * drawn)


def _spread(numbers: Sequence[IntArray], errors: Sequence[FloatArray], drawn: int) -> float:
    """The standard deviation of what one persona or question contributes, were it the only one that was drawn.

    Args:
        numbers: Of which one each row is.
        errors: What each row adds.
        drawn: How many of them there are.
    """
    each = np.bincount(np.concatenate(numbers), weights=np.concatenate(errors))
    return math.sqrt(float(each @ each) * drawn**2 / max(1, drawn - 2))  # beside the mean λ is estimated
