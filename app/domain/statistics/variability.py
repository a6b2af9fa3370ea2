"""How each metric of a cell varies with its wordings (persona instructions), and with its runs within a wording.

Closed forms, without resampling: the delete-one jackknife (Tukey, 1958; Efron and Stein, 1981) over wordings, and over runs within
their wording. For a mean they are the wordings' means and the variances within wordings.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.domain.metrics.definition import Estimate
from app.domain.metrics.metric import FloatArray, IntArray, MetricSet
from app.domain.metrics.rc_atom import distributions
from app.domain.metrics.rc_atom_corrected import excess
from app.domain.metrics.rc_corrected import unbiased_divisor
from app.domain.metrics.registry import METRICS
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores, RunValues

_ALIKE = 10**-12
_SPREADS = {Estimate.SPREAD, Estimate.SAMPLE_SPREAD}


@dataclass(frozen=True, slots=True, eq=False)
class Variability:
    """How one figure of a cell varies.

    Attributes:
        value: The figure.
        dropped: How far the figure lies above what it is without each wording, by the wording's number; ``None`` where runs of
            unknown wording are in it, or nothing is known of runs.
        runs: Shape (K,): each run's influence about its wording's mean, so scaled that the squares add up to the sampling variance
            over runs with these wordings; ``None`` where most runs are their wording's only one, or nothing is known of runs.
        degrees: Of freedom of that variance.
        count: Runs that have the figure.
        surplus: By what share ``runs`` are too large on average: of figures that tell how far runs are apart, one run's part, as the
            jackknife is (Efron and Stein, 1981). By simulation it is 0.2 of RC and 0.27 of RC_atom of 5 runs, 0.05 of 30.
    """

    value: float
    dropped: Mapping[int, float] | None = None
    runs: FloatArray | None = None
    degrees: int = 0
    count: int = 0
    surplus: float = 0.0


def variability(scores: CellScores, runs: IntArray, metrics: MetricSet) -> dict[str, Variability]:
    """How each metric that a cell has by one judge varies.

    Args:
        scores: The judge's scores of the cell.
        runs: Shape (K,): the different runs of the cell's text, sorted; all that any judge's scores name.
        metrics: The same judge's metrics.
    """
    width, instructions = scores.scale.width, scores.run_instructions
    places = np.searchsorted(runs, scores.run_ids)
    layouts: dict[bytes, _Layout] = {}  # most metrics are of the same runs
    wanted = [metric for metric in METRICS if metric.name in metrics]
    by_run = {metric.by_run: metric.by_run(scores) for metric in wanted if metric.by_run is not None}
    found: dict[str, Variability] = {}
    for metric in wanted:
        if metric.by_run is None or metrics[metric.name].value is None:
            continue
        values, used = by_run[metric.by_run]
        layout = layouts.setdefault(used.tobytes(), _Layout(instructions[used], places[used], len(runs)))
        figure = layout.variability(layout.of_values(metric.estimate, values, width))
        found[metric.name] = _spread(figure) if metric.estimate in _SPREADS else figure
    return found | _of_distances(scores, places, len(runs), metrics)


def of_mean(values: RunValues, instructions: IntArray, runs: IntArray) -> Variability:
    """How the mean of runs' values varies.

    Args:
        values: At least one; ``runs`` are the runs' own numbers.
        instructions: Shape (k,): these runs' wordings.
        runs: Shape (K,): the different runs of the cell's text, sorted.
    """
    layout = _Layout(instructions, np.searchsorted(runs, values.runs), len(runs))
    return layout.variability(layout.of_values(Estimate.MEAN, values.values, 1))


def over_judges(value: float, judges: Sequence[Variability]) -> Variability:
    """How the mean of several judges' figures varies.

    Args:
        value: That mean.
        judges: Those of the judges that have the figure, over the same K runs; at least one.
    """
    if len(judges) == 1:
        return replace(judges[0], value=value)
    dropped = [each.dropped for each in judges if each.dropped is not None]
    rows = [each.runs for each in judges if each.runs is not None]
    wordings = sorted({wording for each in dropped for wording in each})
    return Variability(
        value,
        {w: float(np.mean([each.get(w, 0.0) for each in dropped])) for w in wordings}
        if len(dropped) == len(judges)
        else None,
        np.mean(rows, axis=0) if len(rows) == len(judges) else None,
        min(each.degrees for each in judges),
        min(each.count for each in judges),
        float(np.mean([each.surplus for each in judges])),
    )


def _of_distances(
    scores: CellScores, places: IntArray, size: int, metrics: MetricSet
) -> dict[str, Variability]:
    """RC_atom and its parts, and RC_atom beyond chance."""
    if "rc_atom" not in metrics or metrics["rc_atom"].value is None:
        return {}
    cdfs, instructions, used = distributions(scores)
    layout, width = _Layout(instructions, places[used], size), scores.scale.width
    known = instructions != UNKNOWN_INSTRUCTION
    every = _Pairs.among(np.ones(len(cdfs), dtype=np.bool_), cdfs)
    both = every if known.all() else _Pairs.among(known, cdfs)
    same = _Pairs.within(cdfs, instructions)
    found = {}
    for name, pairs, inside in (
        ("rc_atom", every, _Pairs.within(cdfs, instructions, known_only=False)),
        ("rc_atom_within_instruction", same, same),
        ("rc_atom_across_instructions", both.without(same), None),
    ):
        if pairs.reach.any():
            distance = layout.of_pairs(pairs, inside)
            if name == "rc_atom":
                chance = (1 - (metrics["rc_atom_corrected_ceiling"].value or 0.0)) / 2 * width
                found["rc_atom_corrected"] = _beyond_chance(layout.variability(distance), chance, width)
            figure = layout.variability(distance.mapped(lambda each: 1 - 2 * each / width))
            found[name] = _spread(figure) if name == "rc_atom" else figure
    return found


def _spread(figure: Variability) -> Variability:
    return replace(figure, surplus=1 / figure.count)


def _beyond_chance(distance: Variability, chance: float, width: int) -> Variability:
    """1 − 2√(d² − d₀²) / width, d₀ as it is. Where d comes near d₀ the slope has no end: it is taken over a standard error of d."""
    value = 1 - 2 * excess(distance.value, chance) / width
    if distance.runs is None:
        return replace(distance, value=value, dropped=None)
    error = math.sqrt(float((distance.runs**2).sum()))
    low, high = (excess(max(0.0, distance.value + way * error), chance) for way in (-1, 1))
    slope = -(high - low) / error / width if error > _ALIKE else 0.0
    dropped = distance.dropped
    return replace(
        distance,
        value=value,
        dropped=None if dropped is None else {wording: slope * each for wording, each in dropped.items()},
        runs=slope * distance.runs,
    )


class _Pairs(NamedTuple):
    """Pairs of k runs; each attribute of shape (k,).

    Attributes:
        reach: With how many runs each makes a pair.
        apart: Its distances from these, added up.
    """

    reach: FloatArray
    apart: FloatArray

    @classmethod
    def among(cls, some: npt.NDArray[np.bool_], cdfs: FloatArray) -> "_Pairs":
        """All pairs of some runs."""
        reach, apart = np.zeros(len(some)), np.zeros(len(some))
        reach[some] = some.sum() - 1
        apart[some] = _distance_sums(cdfs[some])
        return cls(reach, apart)

    @classmethod
    def within(cls, cdfs: FloatArray, instructions: IntArray, *, known_only: bool = True) -> "_Pairs":
        """All pairs of runs under the same wording."""
        reach, apart = np.zeros(len(cdfs)), np.zeros(len(cdfs))
        for wording in np.unique(instructions):
            if wording != UNKNOWN_INSTRUCTION or not known_only:
                own = instructions == wording
                reach[own], apart[own] = own.sum() - 1, _distance_sums(cdfs[own])
        return cls(reach, apart)

    def without(self, others: "_Pairs") -> "_Pairs":
        """These pairs but the others."""
        return _Pairs(self.reach - others.reach, np.maximum(0.0, self.apart - others.apart))


def _distance_sums(cdfs: FloatArray) -> FloatArray:
    """Shape (k,): the Wasserstein-1 distances of each row from all others, added up; n log n, and 0 for equal rows."""
    count = len(cdfs)
    order = np.argsort(cdfs, axis=0, kind="stable")
    values = np.take_along_axis(cdfs, order, axis=0)
    values = values - values[:1]
    below = values.cumsum(axis=0) - values
    far = values * (2 * np.arange(count)[:, None] - count) + values.sum(axis=0) - 2 * below
    found = np.empty_like(far)
    np.put_along_axis(found, order, far, axis=0)
    return np.asarray(found.sum(axis=1))


class _LeftOut(NamedTuple):
    """A figure, and what it is without each of its k runs, and each of its wordings; NaN where it is not then."""

    value: float
    without_run: FloatArray
    without_wording: FloatArray

    def mapped(self, function: Callable[[FloatArray], FloatArray]) -> "_LeftOut":
        """A function of the figure."""
        value = function(np.array([self.value]))[0]
        return _LeftOut(float(value), function(self.without_run), function(self.without_wording))


class _Layout:
    """Which wording and which of the cell's K runs stand behind the k values of a figure."""

    def __init__(self, wordings: IntArray, places: IntArray, size: int) -> None:
        self._numbers, self._index = np.unique(wordings, return_inverse=True)
        self._counts = np.bincount(self._index)
        self._places, self._size = places, size

    def of_values(self, estimate: Estimate, values: FloatArray, width: int) -> _LeftOut:
        """A metric that is a mean or a spread of runs' values."""
        if estimate is Estimate.MEAN:
            return self._mean(values)
        if estimate is Estimate.ROOT:
            return self._mean(values).mapped(lambda squares: _loss(squares, width))
        unbiased = estimate is Estimate.SAMPLE_SPREAD
        return self._variance(values, unbiased=unbiased).mapped(lambda squares: _loss(squares, width))

    def _mean(self, values: FloatArray) -> _LeftOut:
        total, count = values.sum(), len(values)
        return _LeftOut(
            float(total / count),
            _quotient(total - values, np.full(count, count - 1)),
            _quotient(total - self._by_wording(values), count - self._counts),
        )

    def _variance(self, values: FloatArray, *, unbiased: bool) -> _LeftOut:
        centred = values - values.mean()
        squares, count = centred**2, np.array([len(values)])
        left, sums = count - self._counts, self._by_wording(centred)
        return _LeftOut(
            float(_variance(count, np.zeros(1), squares.sum(keepdims=True), unbiased=unbiased)[0]),
            _variance(np.full(len(values), count - 1), centred, squares.sum() - squares, unbiased=unbiased),
            _variance(left, sums, squares.sum() - self._by_wording(squares), unbiased=unbiased),
        )

    def of_pairs(self, pairs: _Pairs, inside: _Pairs | None) -> _LeftOut:
        """The mean distance over pairs, at least one.

        Args:
            pairs: The pairs.
            inside: Those of them that lie within a wording; ``None`` for none.
        """
        count, total = pairs.reach.sum(), pairs.apart.sum()
        reach, apart = 2 * self._by_wording(pairs.reach), 2 * self._by_wording(pairs.apart)
        if inside is not None:  # counted twice
            reach, apart = reach - self._by_wording(inside.reach), apart - self._by_wording(inside.apart)
        return _LeftOut(
            float(total / count),
            _quotient(total - 2 * pairs.apart, count - 2 * pairs.reach),
            _quotient(total - apart, count - reach),
        )

    def variability(self, found: _LeftOut) -> Variability:
        """How the figure varies."""
        count = len(found.without_run)
        influence = (found.value - found.without_run) * (count - 1) / count
        rows = None
        repeated = int(self._counts[self._counts > 1].sum())
        if 2 * repeated > count and np.isfinite(influence).all():
            centred = influence - (self._by_wording(influence) / self._counts)[self._index]
            rows = np.zeros(self._size)
            # A wording's only run is taken to vary as the others do.
            scale = np.sqrt(count / repeated * self._counts / np.maximum(1, self._counts - 1))
            rows[self._places] = centred * scale[self._index]
        without = found.without_wording
        if len(self._numbers) == 1:
            without = np.array([found.value])  # nothing is left without the only wording
        dropped = None
        if (self._numbers != UNKNOWN_INSTRUCTION).all() and np.isfinite(without).all():
            dropped = dict(zip(self._numbers.tolist(), (found.value - without).tolist(), strict=True))
        return Variability(found.value, dropped, rows, count - len(self._numbers), count)

    def _by_wording(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self._index, weights=values), dtype=np.float64)


def _loss(squares: FloatArray, width: int) -> FloatArray:
    return 1 - 2 * np.sqrt(np.maximum(0.0, squares)) / width


def _variance(count: IntArray, sums: FloatArray, squares: FloatArray, *, unbiased: bool) -> FloatArray:
    """The variance of values with these sums and sums of squares, perhaps so that its root is unbiased; NaN for fewer than two."""
    below = count.astype(np.float64)
    if unbiased:
        below = np.array([unbiased_divisor(n) if n > 1 else 0.0 for n in count.tolist()])
    found = _quotient(np.maximum(0.0, squares - _quotient(sums**2, count)), below)
    return np.where(count > 1, found, np.nan)


def _quotient(above: FloatArray, below: npt.NDArray[np.float64] | IntArray) -> FloatArray:
    found = np.full(len(above), np.nan)
    return np.asarray(np.divide(above, below, out=found, where=below > 0))
