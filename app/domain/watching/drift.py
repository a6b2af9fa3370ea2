"""Whether a series of figures, one a run, has changed: a sequential test whose rate of false alarms is stated.

Each new run is asked whether the last few runs differ from all before them, for several meanings of "few". Each question is a t test
whose share of the false alarms that a year may have is divided among the questions (Bonferroni): whatever the number of runs, a year's
sum is not above it. Mean and spread come from the runs themselves (self-starting; Hawkins, Qiu and Kang, 2003). So that one odd run
raises no alarm, the run on each side that speaks most for a change is left out; and so that runs which depend on each other raise none,
the standard error grows with their lag-1 autocorrelation, corrected for its bias (Marriott and Pope, 1954). After a change the level is
that of the runs since, but the spread is also that of the runs before it, so that a further change is found soon.
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
FEWEST_SINCE = 3
"""The same after an earlier change, if so many runs as :data:`FEWEST_BEFORE` lie before that: they tell the spread, these the level."""
SIZES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
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
        runs_before: Number of values before it, since the last change.
        runs_after: Number of values from it on.
    """

    first: int
    before: float
    after: float
    error: float
    degrees: int
    runs_before: int
    runs_after: int

    @property
    def shift(self) -> float:
        """How far the figure has moved."""
        return self.after - self.before


def hazard(runs_a_year: float, series: int) -> float:
    """The probability of a false alarm that each run of one of several series may have."""
    return FALSE_ALARMS_A_YEAR / max(RUNS_A_YEAR, runs_a_year) / series


def newest_change(
    values: Sequence[float], chance: float, floor: float, earlier: Sequence[float] = ()
) -> Change | None:
    """The change that the newest value of a series gives evidence of.

    Args:
        values: From the last change on, the newest last.
        chance: The probability of a false alarm, by :func:`hazard`.
        floor: Standard deviation that the values have at least.
        earlier: Those before the last change, from the one before it on: only their spread counts.
    """
    series, past = np.asarray(values, dtype=np.float64), _telling(earlier)
    count = len(series)
    sizes = [size for size in SIZES if count - size >= _fewest(past)]
    if not sizes:
        return None
    limit = two_sided(_degrees([series, past]) - 1, chance / len(sizes))
    strength, size = max((_strength(series, count - size, floor, past), size) for size in sizes)
    return shift_at(values, _place(series, size), floor, earlier) if strength > limit else None


def limits(
    values: Sequence[float], chance: float, floor: float, earlier: Sequence[float] = ()
) -> tuple[float, float] | None:
    """The limits for the next run: the third in a row beyond the same one raises an alarm. They are those of the runs before the three."""
    series, past = np.asarray(values[: 1 - SHOWN], dtype=np.float64), _telling(earlier)
    count, fewest = len(series), _fewest(past)
    if count < fewest:
        return None
    floor = max(floor, _of_a_step(series), _of_a_step(past))
    error, degrees = _error([series, past], (count - 1, SHOWN - 1), floor)
    sizes = sum(count + SHOWN - size >= fewest for size in SIZES)
    half = two_sided(degrees + SHOWN - 1, chance / sizes) * error
    return _mean_without(series, high=True) - half, _mean_without(series, high=False) + half


def shift_at(values: Sequence[float], first: int, floor: float, earlier: Sequence[float] = ()) -> Change:
    """How far a series has moved at a place."""
    series = np.asarray(values, dtype=np.float64)
    before, after = series[:first], series[first:]
    error, degrees = _error([before, after, _telling(earlier)], (len(before), len(after)), floor)
    return Change(first, float(before.mean()), float(after.mean()), error, degrees, len(before), len(after))


def _telling(earlier: Sequence[float]) -> FloatArray:
    """Values before the last change, if they are enough to tell the spread."""
    return np.asarray(earlier if len(earlier) >= FEWEST_BEFORE else (), dtype=np.float64)


def _fewest(past: FloatArray) -> int:
    return FEWEST_SINCE if len(past) else FEWEST_BEFORE


def _of_a_step(series: FloatArray) -> float:
    """The standard deviation that a series has at least which is mostly the same: half of the least step away from that.

    Such runs, of a judge at temperature 0, show hardly any spread for years, and then two rare steps in a row.
    """
    if not len(series):
        return 0.0
    found, counts = np.unique(series.round(9), return_counts=True)
    usual = int(counts.argmax())
    if 2 * counts[usual] <= len(series) or len(found) == 1:
        return 0.0
    return float(np.abs(np.delete(found, usual) - found[usual]).min()) / 2


def _strength(series: FloatArray, first: int, floor: float, past: FloatArray) -> float:
    """How many standard errors the runs from a place on lie off, without the one on each side that speaks most for it."""
    before, after = series[:first], series[first:]
    shift = float(after.mean() - before.mean())
    cautious = _mean_without(after, high=shift > 0) - _mean_without(before, high=shift < 0)
    floor = max(floor, _of_a_step(before), _of_a_step(past))
    error, _ = _error([before, after, past], (len(before) - 1, len(after) - 1), floor)
    return abs(cautious) / error if cautious * shift > 0 else 0.0


def _place(series: FloatArray, size: int) -> int:
    """Where a series has changed: near the tested place with most evidence, the run from which on a level of its own fits best."""
    count, at = len(series), SIZES.index(size)
    least = SIZES[at - 1] + 1 if at else SHOWN - 1
    most = SIZES[at + 1] - 1 if at + 1 < len(SIZES) else size
    sizes = np.arange(least, min(most, count - FEWEST_SINCE) + 1)
    sums = (series - series.mean())[::-1].cumsum()[sizes - 1]
    return count - int(sizes[(sums**2 / (sizes * (count - sizes))).argmax()])


def _mean_without(values: FloatArray, *, high: bool) -> float:
    """The mean without the highest value, or the lowest."""
    return (float(values.sum()) - float(values.max() if high else values.min())) / (len(values) - 1)


def _error(parts: Sequence[FloatArray], counted: tuple[int, int], floor: float) -> tuple[float, int]:
    """The standard error of the difference of two means of so many values, and its degrees of freedom.

    Args:
        parts: Stretches of equal spread, each with a level of its own.
        counted: How many values each mean is of.
        floor: Standard deviation that the values have at least.
    """
    centred = [part - part.mean() for part in parts if len(part)]
    squares = float(sum(part @ part for part in centred))
    products = float(sum(part[1:] @ part[:-1] for part in centred))
    degrees = _degrees(parts)
    correlation = _correlation(products, squares, sum(map(len, parts)))
    deviation = max(math.sqrt(squares / degrees), floor)
    return deviation * math.sqrt(sum(_share(correlation, count) for count in counted)), degrees


def _degrees(parts: Sequence[FloatArray]) -> int:
    return sum(len(part) - 1 for part in parts if len(part))


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
