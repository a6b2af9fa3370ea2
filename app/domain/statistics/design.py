"""Intervals and tests by the design: levels and dimensions are fixed strata, personas random within them, wordings crossed with both.

Which population a mean over cells speaks for decides what is drawn anew (Clark, 1973; Judd, Westfall and Kenny, 2012):

* these personas, these wordings: runs within each wording;
* these personas, wordings like these: wordings, by the delete-one jackknife, which for means is Student's t over wordings' means;
* personas like these, these wordings: personas within their strata (Cochran, 1977, section 5.4);
* personas like these, wordings like these: both, v(personas) + v(wordings) − v(their interaction).

Degrees of freedom are Satterthwaite's (Cochran, 1977, equation 5.16), of the last fewer where there are few wordings.
"""

import enum
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray
from app.domain.statistics.resampling import (
    FEWEST_CLUSTERS,
    student,
    student_tail,
    unanimous,
)
from app.domain.statistics.variability import Variability

FEWEST_WORDINGS = 3
"""Two wordings' t has one degree of freedom: 12.7 standard errors."""
FEWEST_WORDINGS_OF_SPREAD = 20
"""Of RC and RC_atom: how far six wordings lie apart tells little of how far others would, and t over them covers 87 to 92 %."""
MANY_CELLS = 10
"""As many cells tell how the runs of one more vary."""
UNKNOWN_RUNS = "unknown_runs: only the value is known, not how it varies with runs"
_NO_SPREAD = 10**-18
_LEAST = 0.1


class Population(enum.Enum):
    """Of whom a figure speaks."""

    THESE = "these personas, these wordings"
    WORDINGS = "these personas, wordings like these"
    PERSONAS = "personas like these, these wordings"
    BOTH = "personas like these, wordings like these"


class Shape(enum.Enum):
    """On which scale a figure's interval is symmetrical."""

    PLAIN = "plain"
    """Its own: scores, and differences."""
    SHARE = "share"
    """The logit: shares and other means from 0 to 1, which are skewed near the ends."""
    HITS = "hits"
    """Wilson's (1927) score: shares of runs, each of which has it or has not."""
    LOSS = "loss"
    """The logarithm of 1 − figure, which is a spread or a mean distance of runs."""


class Stratum(NamedTuple):
    """What the design fixes."""

    task: str
    dimension: str
    level: str


@dataclass(frozen=True, slots=True, eq=False)
class DesignCell:
    """A cell's figure, or the difference of two models' figures, at its place in the design.

    Attributes:
        persona: The persona's id.
        stratum: Where the design places the cell.
        figure: The figure and how it varies; traits that share a text have runs in the same order.
    """

    persona: str
    stratum: Stratum
    figure: Variability


class Error(NamedTuple):
    """The sampling variance of a mean over cells.

    Attributes:
        variance: The square of its standard error.
        degrees: Of freedom.
        clusters: Of what is drawn anew, the fewest.
    """

    variance: float
    degrees: float
    clusters: int

    @property
    def none(self) -> bool:
        """Whether all that is drawn anew is alike, rounding apart."""
        return self.variance < _NO_SPREAD


@dataclass(frozen=True, slots=True)
class Components:
    """What the variances of a mean over P personas and W wordings consist of, each as of that mean.

    Attributes:
        personas: v(personas), with what it has of the interaction; or why it is not known.
        wordings: The same of wordings.
        interaction: v(personas × wordings).
        runs: Of the runs within wordings.
    """

    personas: Error | str
    wordings: Error | str
    interaction: Error | str
    runs: Error | str


def components(cells: Sequence[DesignCell], fewest: int = FEWEST_WORDINGS) -> Components:
    """The variances of the mean over these cells.

    Args:
        cells: At least one.
        fewest: Wordings that tell how others like them would change it.
    """
    strata = _strata(cells)
    effects = _wording_effects(cells, fewest)
    wordings = _over_wordings(effects)
    personas = strata if isinstance(strata, str) else _over_personas(cells, strata)
    interaction: Error | str
    if isinstance(effects, str):
        interaction = effects
    elif isinstance(strata, str):
        interaction = strata
    else:
        interaction = _of_interaction(effects, strata)
    return Components(personas, wordings, interaction, over_runs(cells))


def error(found: Components, population: Population) -> Error | str:
    """The sampling variance for a population, or why it is not known, ``"code: words"``."""
    if population is Population.BOTH:
        parts = of_both(found)
        return parts if isinstance(parts, str) else crossed(*parts)
    if population is Population.PERSONAS:
        return found.personas
    return found.wordings if population is Population.WORDINGS else found.runs


def of_both(found: Components) -> list[Error] | str:
    """Personas', wordings' and their interaction's, of which the variance over both consists; or why one is not known."""
    return _known(found.personas, found.wordings, found.interaction)


def _known(*parts: Error | str) -> list[Error] | str:
    """The parts, or the first reason why one is not known."""
    reasons = [part for part in parts if isinstance(part, str)]
    return reasons[0] if reasons else [part for part in parts if isinstance(part, Error)]


def crossed(personas: Error, wordings: Error, both: Error) -> Error:
    """The sampling variance over personas and wordings from :func:`of_both`."""
    whole = personas.variance + wordings.variance - both.variance
    larger = max(personas, wordings)
    clusters = min(personas.clusters, wordings.clusters)
    if (
        whole <= larger.variance
    ):  # each has the interaction in it already: the sum is never less than one of them
        return larger._replace(clusters=clusters)
    parts = (personas, wordings, both)
    found = degrees_of_both([each.variance for each in parts], [each.degrees for each in parts])
    return Error(whole, float(found), clusters)


def degrees_of_both(variances: Iterable[Any], degrees: Iterable[Any]) -> Any:
    """The degrees of freedom of v(personas) + v(wordings) − v(interaction), numbers or arrays alike.

    Satterthwaite's are an estimate, too many where a few wordings look alike by chance: with three, up to 7.5 % of equal models then
    differ. Cochran and Cox's t (1957), the mean of both samples' t weighted by variance, is safe, and too wide where there are many
    wordings. This is between them, nearer to the latter the fewer wordings there are: at most 5.5 % differ, of 6 to 150 personas and
    any wordings from three on. What is averaged is 1 / (degrees − 1), in which Student's quantile is nearly linear.

    Args:
        variances: Personas', wordings' and their interaction's.
        degrees: Theirs.
    """
    (personas, wordings, both), (of_personas, of_wordings, of_interaction) = variances, degrees
    squares = personas**2 / of_personas + wordings**2 / of_wordings + both**2 / of_interaction
    estimated = (personas + wordings - both) ** 2 / np.maximum(squares, _NO_SPREAD**2)
    share = np.minimum(1, 2 / of_wordings)
    safe = personas / np.maximum(_LEAST, of_personas - 1) + wordings / np.maximum(_LEAST, of_wordings - 1)
    steep = share * safe / np.maximum(personas + wordings, _NO_SPREAD)
    estimated = np.maximum(estimated, np.minimum(of_personas, of_wordings))
    return 1 + 1 / (steep + (1 - share) / np.maximum(_LEAST, estimated - 1))


def plus(one: Error | str, other: Error | str) -> Error | str:
    """The sampling variance of a difference of independent figures, by Welch and Satterthwaite; or why one's is not known."""
    parts = _known(one, other)
    if isinstance(parts, str):
        return parts
    whole = sum(part.variance for part in parts)
    clusters = min(part.clusters for part in parts)
    if whole < _NO_SPREAD:
        return Error(whole, sum(part.degrees for part in parts), clusters)
    return Error(whole, whole**2 / sum(part.variance**2 / part.degrees for part in parts), clusters)


def interval(
    value: float, found: Error | str, bounds: tuple[float, float], shape: Shape = Shape.PLAIN
) -> Interval:
    """Student's 95 % interval about a figure.

    Args:
        value: The figure.
        found: Its sampling variance, or why there is none.
        bounds: The figure's range.
        shape: On which scale the interval is symmetrical.
    """
    if isinstance(found, str):
        return Interval.missing(found)
    if found.none:
        return unanimous(value, found.clusters, bounds)
    # The degrees are rounded, so that each quantile is computed once.
    half = student(round(found.degrees, 1)) * math.sqrt(found.variance)
    if shape is Shape.LOSS and value < 1:
        factor = _exp(half / (1 - value))
        return Interval.around(value, 1 - (1 - value) * factor, 1 - (1 - value) / factor, bounds)
    if shape is Shape.HITS and 0 < value < 1:
        # As many independent runs as have this variance, of which a wording or persona may be fewer or more (Korn and Graubard, 1998).
        runs, square = value * (1 - value) / found.variance + 1, half**2 / found.variance
        centre, own = value * runs + square / 2, math.sqrt(square * (runs * value * (1 - value) + square / 4))
        return Interval.around(
            value, (centre - own) / (runs + square), (centre + own) / (runs + square), bounds
        )
    if shape is Shape.SHARE and 0 < value < 1:
        odds, factor = value / (1 - value), _exp(half / value / (1 - value))
        return Interval.around(value, odds / (odds + factor), odds * factor / (odds * factor + 1), bounds)
    return Interval.around(value, value - half, value + half, bounds)


def _exp(power: float) -> float:
    return math.exp(min(700.0, power))


def p_value(value: float, found: Error) -> float:
    """Two-sided, of no difference, by the t of the interval.

    Args:
        value: The difference.
        found: Its sampling variance, which is not :attr:`~Error.none`.
    """
    return student_tail(value / math.sqrt(found.variance), found.degrees)


def over_runs(cells: Sequence[DesignCell]) -> Error | str:
    """The variance over the runs of these cells, with their wordings; or why it is not known.

    The runs of a cell that does not tell how they vary, among ten or more that do, are taken to vary as those do on average. What the
    jackknife of a spread is too large by (:attr:`Variability.surplus`) goes with the spread itself, so that one cell's interval on the
    logarithm has it right; of many cells' mean it is taken off.
    """
    # Traits that share a text have the same runs, in the same order.
    sums: dict[tuple[str, str, int], FloatArray] = {}
    freedom: dict[tuple[str, str, int], int] = {}
    of_a_run: list[float] = []
    single: list[int] = []
    for cell in cells:
        rows, degrees, count = cell.figure.runs, cell.figure.degrees, cell.figure.count
        if not count:
            return UNKNOWN_RUNS
        if rows is None:
            single.append(count)
            continue
        of_a_run.append(count * float(rows @ rows))
        text = cell.persona, cell.stratum.task, len(rows)
        sums[text] = sums.get(text, 0.0) + rows
        freedom[text] = min(freedom.get(text, degrees), degrees)
    if len(single) * MANY_CELLS > len(of_a_run):
        where = f"in {len(single)} of {len(cells)} cells " if len(cells) > 1 else ""
        return f"single_runs: {where}too few runs for a wording to tell repetition from wording"
    variances = [float((rows**2).sum()) for rows in sums.values()]
    found = _satterthwaite(variances, list(freedom.values()), len(cells), sum(freedom.values()) + 1)
    others = fmean(of_a_run) * sum(1 / count for count in single) / len(cells) ** 2
    surplus = fmean(cell.figure.surplus for cell in cells) * (1 - 1 / len(sums))
    return found._replace(variance=(found.variance + others) * (1 - surplus))


def _satterthwaite(variances: Sequence[float], degrees: Sequence[float], count: int, clusters: int) -> Error:
    """The variance of a mean over ``count`` cells from independent ones of sums.

    An estimated variance's square is too large on average, by 1 + 2 / degrees, and strata of two personas would seem to have fewer
    degrees of freedom than they have; Welch's (1947) form allows for that.
    """
    total = sum(variances)
    if total == 0:
        return Error(0.0, float(sum(degrees)), clusters)
    freedom = total**2 / sum(v**2 / (d + 2) for v, d in zip(variances, degrees, strict=True)) - 2
    return Error(total / count**2, max(min(degrees), min(sum(degrees), freedom)), clusters)


@dataclass(frozen=True, slots=True, eq=False)
class _Strata:
    """Cells' strata and personas.

    Attributes:
        of_cell: Shape (N,): each cell's stratum, by number.
        persona_of: Shape (N,): each cell's persona, by number.
        personas: Shape (H,): how many personas each stratum has, at least two.
        block_of: Shape (P,): strata that share personas are one block; each persona's.
        degrees: By block: personas less the strata that a persona is in one of.
    """

    of_cell: np.ndarray
    persona_of: np.ndarray
    personas: np.ndarray
    block_of: np.ndarray
    degrees: FloatArray

    def by_persona(self, values: FloatArray) -> FloatArray:
        """Shape (P, …): sums over each persona's cells of what lies beside its stratum's mean, small samples allowed for.

        Args:
            values: Shape (N, …).
        """
        counts = np.bincount(self.of_cell)
        means = np.zeros((len(counts), *values.shape[1:]))
        np.add.at(means, self.of_cell, values)
        beside = values - (means.T / counts).T[self.of_cell]
        scale = np.sqrt(self.personas / (self.personas - 1))[self.of_cell]
        found = np.zeros((int(self.persona_of.max()) + 1, *values.shape[1:]))
        np.add.at(found, self.persona_of, (beside.T * scale).T)
        return found


def _strata(cells: Sequence[DesignCell]) -> _Strata | str:
    """The strata of task, dimension and level; where one has a single persona, dimensions are collapsed (Cochran, 1977, 5A.12)."""
    personas = len({cell.persona for cell in cells})
    if personas < FEWEST_CLUSTERS:
        counted = f"{personas} persona{'s' * (personas != 1)}"
        return f"too_few_personas: {counted}; an interval needs {FEWEST_CLUSTERS}"
    for keys in (
        [cell.stratum for cell in cells],
        [cell.stratum._replace(dimension="") for cell in cells],
    ):
        members: dict[Stratum, set[str]] = defaultdict(set)
        for key, cell in zip(keys, cells, strict=True):
            members[key].add(cell.persona)
        if min(map(len, members.values())) > 1:
            return _numbered(cells, keys, members)
    return "one_persona_on_a_level: levels are fixed, and one persona does not tell how personas on its level differ"


def _numbered(
    cells: Sequence[DesignCell], keys: Sequence[Stratum], members: dict[Stratum, set[str]]
) -> _Strata:
    names = sorted({cell.persona for cell in cells})
    numbers = {stratum: n for n, stratum in enumerate(sorted(members))}
    places = {name: n for n, name in enumerate(names)}
    block = list(range(len(names)))
    for found in members.values():
        joined = {block[places[name]] for name in found}
        block = [min(joined) if each in joined else each for each in block]
    blocks = np.unique(block, return_inverse=True)[1]
    size = np.bincount(blocks)
    strata = np.zeros(len(size))
    seats = np.zeros(len(size))
    for found in members.values():
        own = blocks[places[next(iter(found))]]
        strata[own] += 1
        seats[own] += len(found)
    return _Strata(
        of_cell=np.array([numbers[key] for key in keys]),
        persona_of=np.array([places[cell.persona] for cell in cells]),
        personas=np.array([len(members[stratum]) for stratum in sorted(members)]),
        block_of=blocks,
        degrees=np.maximum(1.0, size - strata * size / seats),
    )


def _over_personas(cells: Sequence[DesignCell], strata: _Strata) -> Error:
    values = np.array([cell.figure.value for cell in cells])
    squares = strata.by_persona(values) ** 2
    by_block = np.bincount(strata.block_of, weights=squares)
    return _satterthwaite(by_block.tolist(), strata.degrees.tolist(), len(cells), len(squares))


def _wording_effects(cells: Sequence[DesignCell], fewest: int) -> FloatArray | str:
    """Shape (N, W): each cell's jackknife values by wording, less its figure."""
    if not all(cell.figure.count for cell in cells):
        return UNKNOWN_RUNS
    found = [cell.figure.dropped for cell in cells]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return "unknown_wordings: a run's wording is not known, or without one wording too few runs are left"
    wordings = sorted({wording for each in known for wording in each})
    if len(wordings) < fewest:
        counted = f"{len(wordings)} wording{'s' * (len(wordings) != 1)}"
        return f"too_few_wordings: {counted}; an interval over wordings needs {fewest}"
    return (len(wordings) - 1) * np.array([[each.get(w, 0.0) for w in wordings] for each in known])


def over_wordings(cells: Sequence[DesignCell], fewest: int) -> Error | str:
    """The variance over wordings, with their runs; or why it is not known. See :func:`components`."""
    return _over_wordings(_wording_effects(cells, fewest))


def _over_wordings(effects: FloatArray | str) -> Error | str:
    if isinstance(effects, str):
        return effects
    means = effects.mean(axis=0)
    count = len(means)
    variance = float(((means - means.mean()) ** 2).sum()) / (count * (count - 1))
    return Error(variance, count - 1, count)


def _of_interaction(effects: FloatArray, strata: _Strata) -> Error:
    rows = strata.by_persona(effects)
    count = effects.shape[1]
    rows = rows - rows.mean(axis=1, keepdims=True)
    variance = float((rows**2).sum()) / (len(effects) ** 2 * count * (count - 1))
    degrees = float(strata.degrees.sum()) * (count - 1)
    return Error(variance, degrees, len(rows))
