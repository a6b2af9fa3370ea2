"""How a metric of a cell varies with its runs: its value in every resample, and each run's influence on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.statistics.pair_sums import PairSums


@dataclass(frozen=True, slots=True, eq=False)
class Varied:
    """How a statistic of K runs varies in all b resamples.

    Attributes:
        value: The statistic of the runs as they are.
        runs: n, the runs that it uses, up to K.
        influence: Shape (K,): see :class:`Variation`.
        draws: Shape (b,): its value in every resample, NaN where it has none.
        draw_errors: Shape (b,): its standard error in every resample, n at least 2; ``None`` where no interval needs it.
    """

    value: float
    runs: int
    influence: FloatArray
    draws: FloatArray
    draw_errors: FloatArray | None

    @property
    def scaled_influence(self) -> FloatArray:
        """Shape (K,): the influences, whose sum of squares is the statistic's sampling variance; n at least 2."""
        return self.influence * math.sqrt(self.runs / (self.runs - 1))

    @property
    def error(self) -> float:
        """The statistic's standard error; n at least 2."""
        return float(np.sqrt((self.scaled_influence**2).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """A statistic of K runs under some resamples of them, m.

    Attributes:
        value: The statistic of the runs as they are.
        runs: n, the runs that it uses, up to K.
        draws: Shape (m,): its value in every resample, NaN where it has none.
        influence: Shape (K,): how far the statistic moves per unit of a run's weight (the infinitesimal jackknife); 0
            for runs that it does not use.
        errors: Shape (K, m): the same in every resample; ``None`` where no interval needs it.
    """

    value: float
    runs: int
    draws: FloatArray
    influence: FloatArray
    errors: FloatArray | None = None

    def varied(self, weights: FloatArray) -> Varied:
        """What remains of it beside that of further resamples.

        Args:
            weights: Shape (K, m).
        """
        errors = None
        if self.errors is not None and self.runs > 1:
            scale = math.sqrt(self.runs / (self.runs - 1))
            errors = scale * np.sqrt(np.einsum("kb,kb,kb->b", weights, self.errors, self.errors))
        return Varied(self.value, self.runs, self.influence, self.draws, errors)


def joined(parts: Sequence[Varied]) -> Varied:
    """A statistic in all resamples, from some and the others."""
    if len(parts) == 1:
        return parts[0]
    errors = [each.draw_errors for each in parts if each.draw_errors is not None]
    return replace(
        parts[0],
        draws=np.concatenate([each.draws for each in parts]),
        draw_errors=np.concatenate(errors) if errors else None,
    )


def of_mean(values: FloatArray, runs: IntArray, weights: FloatArray) -> Variation:
    """The mean of runs' values.

    Args:
        values: Shape (n,), n at least 1.
        runs: Shape (n,): which of the K runs these are.
        weights: Shape (K, m).
    """
    used = weights[runs]
    total = used.sum(axis=0)
    draws = np.divide(values @ used, total, out=np.full(len(total), np.nan), where=total > 0)
    value = float(values.mean())
    return Variation(value, len(values), draws, _placed((values - value) / len(values), runs, len(weights)))


def of_pairs(sums: PairSums, runs: IntArray, size: int) -> Variation | None:
    """The mean distance over pairs of runs; ``None`` without a pair.

    Σ wᵢwⱼ dᵢⱼ / Σ wᵢwⱼ over the pairs i ≠ j. A run that is drawn twice makes no pair with itself: such pairs, of distance 0,
    would make a resample look more alike than the runs are.

    Args:
        sums: Of the pairs that count.
        runs: Shape (n,): which of the K runs these are.
        size: K.
    """
    total = sums.reach[:, 0].sum()
    if not total:
        return None
    value = float(sums.apart[:, 0].sum() / total)
    influence = 2 * (sums.apart[:, 0] - value * sums.reach[:, 0]) / total
    used, reach, apart = sums.weights[:, 1:], sums.reach[:, 1:], sums.apart[:, 1:]
    count = np.einsum("kb,kb->b", used, reach)
    known = count > 0
    safe = np.where(known, count, 1.0)
    draws = np.where(known, np.einsum("kb,kb->b", used, apart) / safe, np.nan)
    errors = 2 * (apart - np.nan_to_num(draws) * reach) / safe
    return Variation(value, len(runs), draws, _placed(influence, runs, size), _placed(errors, runs, size))


def transformed(
    variation: Variation, values: FloatArray, value: float, slopes: FloatArray, slope: float
) -> Variation:
    """A function of a statistic, by its values and derivatives in the resamples and at the estimate."""
    errors = None if variation.errors is None else variation.errors * slopes
    return Variation(value, variation.runs, values, variation.influence * slope, errors)


def mean_of(variations: Sequence[Variation]) -> Variation:
    """The mean of several judges' statistics of the same runs; the fewest runs that one of them uses count."""
    if len(variations) == 1:
        return variations[0]
    errors = [each.errors for each in variations if each.errors is not None]
    return Variation(
        value=float(np.mean([each.value for each in variations])),
        runs=min(each.runs for each in variations),
        draws=np.mean([each.draws for each in variations], axis=0),
        influence=np.mean([each.influence for each in variations], axis=0),
        errors=np.mean(errors, axis=0) if errors else None,
    )


def _placed(rows: FloatArray, runs: IntArray, size: int) -> FloatArray:
    """``rows`` at the positions ``runs`` among ``size`` rows, the others 0."""
    found = np.zeros((size, *rows.shape[1:]))
    found[runs] = rows
    return found
