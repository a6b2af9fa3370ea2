"""Whether a series of figures, one a run, has changed: a sequential test whose rate of false alarms is stated.

Each new run is asked whether the last few runs differ from all before them, for several meanings of "few". Each question is a t test
whose share of the false alarms that a year may have is divided among the questions (Bonferroni): whatever the number of runs, a year's
sum is not above it. Mean and spread come from the runs themselves (self-starting; Hawkins, Qiu and Kang, 2003). So that one odd run
raises no alarm, the run that speaks most for a change is left out; and so that runs which depend on each other raise none, the standard
error grows with their lag-1 autocorrelation, corrected for its bias (Marriott and Pope, 1954).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from app.domain.metrics.metric import FloatArray

FALSE_ALARMS_A_YEAR = 0.05
"""Of a schedule, at most."""
RUNS_A_YEAR = 366.0
"""A schedule that runs less often is tested as a daily one."""
FEWEST_BEFORE = 10
"""Runs that a change is measured against, at least."""
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
"""Numbers of last runs that are compared with all before them."""
MOST_CORRELATION = 0.9
RESOLUTION = 0.002
"""Standard deviation that a figure's runs are taken to have at least, as a share of the figure's range. A judge at temperature 0 gives
frozen texts the same scores each time, and one score that differs is no drift."""
SHOWN = 3
"""How many runs in a row beyond the limits raise an alarm."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change in a series.

    Attributes:
        first: Index of the first value after it.
        before: Mean of the values before it.
        after: Mean of those from it on.
        error: Standard error of the difference.
        degrees: Its degrees of freedom.
    """

    first: int
    before: float
    after: float
    error: float
    degrees: int

    @property
    def shift(self) -> float:
        """How far the figure has moved."""
        return self.after - self.before


def hazard(runs_a_year: float, series: int) -> float:
    """The probability of a false alarm that each run of one of several series may have."""
    return FALSE_ALARMS_A_YEAR / max(RUNS_A_YEAR, runs_a_year) / series


def newest_change(values: Sequence[float], chance: float, floor: float) -> Change | None:
    """The change that the newest value of a series gives evidence of.

    Args:
        values: From the last change on, the newest last.
        chance: The probability of a false alarm, by :func:`hazard`.
        floor: Standard deviation that the values have at least.
    """
    count = len(values)
    sizes = [size for size in SIZES if count - size >= FEWEST_BEFORE]
    if not sizes:
        return None
    series = np.asarray(values, dtype=np.float64)
    limit = two_sided(count - 2, chance / len(sizes))
    found = [_tested(series, count - size, floor) for size in sizes]
    strength, best = max(found, key=lambda each: each[0])
    return best if strength > limit else None


def limits(values: Sequence[float], chance: float, floor: float) -> tuple[float, float] | None:
    """The limits for the next run: the third in a row beyond the same one raises an alarm. They are those of the runs before the three."""
    series = np.asarray(values[: 1 - SHOWN], dtype=np.float64)
    count = len(series)
    if count < FEWEST_BEFORE:
        return None
    floor = max(floor, _of_a_step(series))
    centred = series - series.mean()
    squares = float(centred @ centred)
    deviation = max(math.sqrt(squares / (count - 1)), floor)
    correlation = _correlation(float(centred[1:] @ centred[:-1]), squares, count)
    error = deviation * math.sqrt(_share(correlation, count) + _share(correlation, SHOWN - 1))
    sizes = sum(count + SHOWN - size >= FEWEST_BEFORE for size in SIZES)
    half = two_sided(count + SHOWN - 2, chance / sizes) * error
    return float(series.mean()) - half, float(series.mean()) + half


def shift_at(values: Sequence[float], first: int, floor: float) -> Change:
    """How far a series has moved at a place that is known from elsewhere."""
    series = np.asarray(values, dtype=np.float64)
    before, after = series[:first], series[first:]
    error, degrees = _error(before, after, len(after), floor)
    return Change(first, float(before.mean()), float(after.mean()), error, degrees)


def _of_a_step(series: FloatArray) -> float:
    """The standard deviation that a series has at least which is mostly the same: half of the least step away from that.

    Such runs, of a judge at temperature 0, show hardly any spread for years, and then two rare steps in a row.
    """
    found, counts = np.unique(series.round(9), return_counts=True)
    usual = int(counts.argmax())
    if 2 * counts[usual] <= len(series) or len(found) == 1:
        return 0.0
    return float(np.abs(np.delete(found, usual) - found[usual]).min()) / 2


def _tested(series: FloatArray, first: int, floor: float) -> tuple[float, Change]:
    """How many standard errors the runs from a place on lie off, without the one that lies off most; and the change."""
    before, after = series[:first], series[first:]
    shift = float(after.mean() - before.mean())
    most = float(after.max() if shift > 0 else after.min())
    cautious = (float(after.sum()) - most) / (len(after) - 1) - float(before.mean())
    error, degrees = _error(before, after, len(after) - 1, max(floor, _of_a_step(before)))
    change = Change(first, float(before.mean()), float(after.mean()), error, degrees)
    return (abs(cautious) / error if cautious * shift > 0 else 0.0), change


def _error(before: FloatArray, after: FloatArray, counted: int, floor: float) -> tuple[float, int]:
    """The standard error of the difference of two means, of the later one over so many values; and its degrees of freedom."""
    parts = [before - before.mean(), after - after.mean()]
    squares = float(sum(part @ part for part in parts))
    count = len(before) + len(after)
    degrees = count - 2
    products = float(sum(part[1:] @ part[:-1] for part in parts))
    correlation = _correlation(products, squares, count)
    deviation = max(math.sqrt(squares / degrees), floor)
    shares = _share(correlation, len(before)) + _share(correlation, counted)
    return deviation * math.sqrt(shares), degrees


def _correlation(products: float, squares: float, count: int) -> float:
    """The lag-1 autocorrelation; a negative one counts as none."""
    if squares <= 0:
        return 0.0
    raw = products / squares
    return min(max(raw + (1 + 4 * raw) / count, 0.0), MOST_CORRELATION)


def _share(correlation: float, count: int) -> float:
    """The variance of a mean of so many values, as a share of one value's."""
    r = correlation
    return ((1 + r) / (1 - r) - 2 * r * (1 - r**count) / (count * (1 - r) ** 2)) / count


@lru_cache(maxsize=4096)
def two_sided(degrees: int, chance: float) -> float:
    """Standard errors beyond which a t variable lies with this probability, on either side."""
    from scipy import special  # noqa: PLC0415 - its import takes a second, and only schedules' runs need it

    return -float(special.stdtrit(degrees, chance / 2))
