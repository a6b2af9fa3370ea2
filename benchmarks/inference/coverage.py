"""How often 95 % intervals cover the truth, by design and population."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.registry import range_of
from app.domain.statistics.cells import CellEstimate, estimate_cell, fewest_wordings, shape_of
from app.domain.statistics.design import (
    DesignCell,
    Population,
    Stratum,
    components,
    error,
    interval,
)
from benchmarks.inference.population import LEVEL_MEANS, METRICS, Layout, Pool, Spread
from benchmarks.inference.truth import Truth

PERSONAS = (1, 2, 3, 6, 15)
LAYOUTS = {
    "5 runs, one wording": Layout(1, 5),
    "5 runs, 5 wordings": Layout(5, 1),
    "30 runs, 6 wordings": Layout(6, 5),
}
EFFECTS = {"none": Spread(0.4, 0.0, 0.0), "small": Spread(0.4, 0.1, 0.05), "large": Spread(0.4, 0.3, 0.15)}
SCALE = (1.0, 5.0)


@dataclass(slots=True)
class Row:
    """What became of the intervals of one kind."""

    hits: int = 0
    printed: int = 0
    of: int = 0
    width: float = 0.0
    reasons: set[str] = field(default_factory=set)

    @property
    def coverage(self) -> float:
        """Of the printed ones; NaN without any."""
        return self.hits / self.printed if self.printed else math.nan


Key = tuple[int, str, Population]
"""Personas, metric, population."""


def simulated(
    draws: np.random.Generator, pool: Pool, spread: Spread, layout: Layout, levels: Sequence[int]
) -> tuple[list[CellEstimate], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """One job: a cell for each persona, and the effects behind them."""
    personas = spread.personas * draws.standard_normal(len(levels))
    wordings = spread.wordings * draws.standard_normal(layout.wordings)
    both = spread.both * draws.standard_normal((len(levels), layout.wordings))
    effects = np.array(LEVEL_MEANS)[list(levels), None] + personas[:, None] + wordings + both
    places, chosen = pool.cells(draws, effects, layout)
    cells = [pool.scores(places[n], chosen[n], level, layout) for n, level in enumerate(levels)]
    runs = np.arange(layout.runs)
    return [estimate_cell({"judge": cell}, runs) for cell in cells], (personas, wordings, both)


def design_cells(found: Sequence[CellEstimate], levels: Sequence[int], name: str) -> list[DesignCell]:
    """The cells' figures of one metric, in their strata."""
    return [
        DesignCell(f"p{n}", Stratum("essay", "E", str(level)), each.varied[name])
        for n, (level, each) in enumerate(zip(levels, found, strict=True))
    ]


def coverage(
    pool: Pool, spread: Spread, layout: Layout, strata: int, repetitions: int, seed: int
) -> dict[Key, Row]:
    """Rows by number of personas, metric and population."""
    draws = np.random.default_rng(seed)
    levels = tuple(2 - n % strata for n in range(max(PERSONAS)))
    truth = Truth(pool, spread, layout, levels, np.random.default_rng([seed, 1]))
    rows: dict[Key, Row] = defaultdict(Row)
    for _ in range(repetitions):
        found, effects = simulated(draws, pool, spread, layout, levels)
        truths = truth.of_cells(*effects)
        for name in METRICS:
            cells = design_cells(found, levels, name)
            shape = shape_of(name)
            for personas in PERSONAS:
                some = cells[:personas]
                value = float(np.mean([cell.figure.value for cell in some]))
                varied = components(some, fewest_wordings(name))
                for population in Population:
                    ends = interval(value, error(varied, population), range_of(name, SCALE), shape)
                    true = float(np.mean([each[name] for each in truths[population][:personas]]))
                    count(rows[personas, name, population], ends, true)
    return rows


def count(row: Row, found: Interval, true: float) -> None:
    """Counts an interval."""
    row.of += 1
    if found.ends is None:
        row.reasons.add((found.reason or "").partition(":")[0])
        return
    low, high = found.ends
    row.printed += 1
    row.width += high - low
    row.hits += low <= true <= high
