"""What the differences of models vary with, from figures that there are: for planning another comparison."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from app.domain.metrics.interval import Ends
from app.domain.results.comparison import Figures
from app.domain.statistics.cells import shape_of
from app.domain.statistics.design import DesignCell, Error, Shape, Stratum, components
from app.domain.statistics.power import Noise, Size
from app.domain.statistics.resampling import student
from app.domain.statistics.variability import Variability

PUBLISHED = Size(personas=15, levels=3, wordings=6, iterations=5)
"""How large the atomic paper's comparisons are."""
_MANY = 100.0
"""Degrees of freedom of a total's interval over runs, of which nothing is told but that there are many."""


class KnownNoise(NamedTuple):
    """A noise, and where it is from.

    Attributes:
        noise: The noise.
        personas: Where that of personas and levels is from.
        wordings: Where that of wordings and runs is from.
    """

    noise: Noise
    personas: str
    wordings: str


@dataclass(frozen=True, slots=True)
class Variances:
    """What is known of the noise of models' differences; ``None`` where nothing is.

    Attributes:
        personas: Of a persona's difference, with what the wordings and runs behind it add.
        levels: Between levels.
        wordings: Of wordings, the same for all personas.
        cells: Of a wording's effect on one persona alone, with the runs behind it.
        runs: Of single runs; 0 where it is part of ``cells``.
        size: Of the comparisons; no wordings where they are not known.
    """

    personas: float | None
    levels: float
    wordings: float | None
    cells: float
    runs: float
    size: Size

    def noise(self, assumed: Noise) -> Noise:
        """The noise; what is not known is as is assumed."""
        size = self.size
        if self.wordings is None:
            found = assumed
        else:
            both = max(0.0, self.cells - self.runs / size.iterations)
            found = assumed._replace(
                wordings=math.sqrt(self.wordings), both=math.sqrt(both), runs=math.sqrt(self.runs)
            )
        if self.personas is None:
            return found
        within = (found.both**2 + found.runs**2 / size.iterations) / max(1, size.wordings)
        own = self.personas - (within if size.wordings else 0.0)
        return found._replace(personas=math.sqrt(max(0.0, own)), levels=math.sqrt(self.levels))


def assumed(metric: str, width: float, tasks: int) -> Noise:
    """The noise where no job tells it: a twentieth of the scale for wordings, three for runs of a task.

    Args:
        metric: The metric.
        width: Of its scale.
        tasks: Over which a persona's figure is a mean.
    """
    # A single run's ACC is 0 or 1: the published cells' ACC · (1 − ACC) is its variance.
    runs = 0.45 if metric == "acc" else 0.15
    return Noise(0.1 * width, 0.05 * width, 0.03 * width, runs * width / math.sqrt(tasks), 0.1 * width)


def differences(metric: str, tasks: Collection[str], a: Figures, b: Figures) -> list[DesignCell]:
    """Two models' differences in some tasks, at their places in the design, wherever both have the figure."""
    found = []
    for (name, place), one in sorted(a.items()):
        other = b.get((name, place))
        if name != metric or place.task not in tasks or other is None:
            continue
        if one.value is None or other.value is None:
            continue
        dropped = None
        if one.wordings and other.wordings and one.wordings.keys() == other.wordings.keys():
            words = sorted(one.wordings)
            dropped = {n: one.wordings[w] - other.wordings[w] for n, w in enumerate(words)}
        figure = Variability(one.value - other.value, dropped, count=min(one.n, other.n))
        found.append(DesignCell(place.persona, Stratum(place.task, place.dimension, place.level), figure))
    return found


def variances(pairs: Sequence[Sequence[DesignCell]], runs: Sequence[float | None]) -> Variances:
    """What pairs of models tell of the noise, on average.

    Args:
        pairs: Each pair's differences, all of one design; at least one, none empty.
        runs: The variance of each pair's mean difference over its runs; ``None`` where that is not known.
    """
    first = pairs[0]
    wordings = len(first[0].figure.dropped or ())
    size = Size(
        personas=len({cell.persona for cell in first}),
        levels=len({cell.stratum.level for cell in first}),
        wordings=wordings,
        iterations=max(1, round(first[0].figure.count / max(1, wordings))),
    )
    found = [components(cells) for cells in pairs]
    over_personas = _mean([each.personas for each in found])
    over_wordings = _mean([each.wordings for each in found])
    both = _mean([each.interaction for each in found])
    known = [each for each in runs if each is not None]
    of_runs = fmean(known) if len(known) == len(runs) else 0.0
    cells = size.personas * size.wordings
    levels = fmean(_between_levels(each) for each in pairs)
    if over_wordings is None or both is None:
        over_wordings = both = None
    return Variances(
        personas=None if over_personas is None else over_personas * size.personas,
        levels=levels,
        wordings=None if over_wordings is None or both is None else max(0.0, over_wordings - both) * wordings,
        cells=(both or 0.0) * cells,
        runs=of_runs * cells * size.iterations,
        size=size,
    )


def _mean(errors: Sequence[Error | str]) -> float | None:
    found = [each.variance for each in errors if isinstance(each, Error)]
    return fmean(found) if found else None


def _between_levels(cells: Sequence[DesignCell]) -> float:
    """The variance of levels' mean differences."""
    by_level: dict[str, list[float]] = {}
    for cell in cells:
        by_level.setdefault(cell.stratum.level, []).append(cell.figure.value)
    return float(np.var([fmean(values) for values in by_level.values()]))


def variance_of(metric: str, value: float, ends: Ends) -> float | None:
    """The variance behind a total's interval over many runs; ``None`` where the interval reaches the scale's end."""
    low, high = ends
    shape, t = shape_of(metric), student(_MANY)
    if shape in {Shape.SHARE, Shape.HITS} and not 0 < low <= high < 1:
        return None
    if shape is Shape.HITS:  # the end of Wilson's interval, solved for its runs
        far = max(low, high, key=lambda end: abs(end - value))
        runs = t**2 * far * (1 - far) / (far - value) ** 2
        return value * (1 - value) / (runs - 1) if runs > 1 else None
    half = (
        (_logit(high) - _logit(low)) / 2 * value * (1 - value) if shape is Shape.SHARE else (high - low) / 2
    )
    return (half / t) ** 2


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
