"""The true figures of a drawn design, for each population that an interval can speak of."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.design import Population
from benchmarks.inference.population import LEVEL_MEANS, METRICS, Layout, Pool, Spread

LINEAR = ("mean", "acc", "acc_atom", "ic_atom")
"""Means of runs' values: their truth needs no simulation."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
CELLS_OF_A_TRUTH = 120
PERSONAS_OF_A_TRUTH = 400
CELLS_OF_THE_TRUTH = 5_000
CELLS_OF_A_PLACE = 400


@dataclass(frozen=True)
class Truth:
    """What is true of cells drawn from a pool.

    Attributes:
        pool: The runs.
        spread: Of personas and wordings.
        layout: Of a cell's runs; RC and RC_atom are the means over repetitions of this layout.
        levels: Of the personas.
        draws: Of the simulated part.
    """

    pool: Pool
    spread: Spread
    layout: Layout
    levels: tuple[int, ...]
    draws: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    @cached_property
    def _values(self) -> dict[int, dict[str, FloatArray]]:
        """By level and metric, shape (G,): the long-run mean at each place."""
        return {
            level: {name: found.mean(axis=1) for name, found in self.pool.values(level).items()}
            for level in set(self.levels)
        }

    def _linear(self, level: int, centres: FloatArray, sd: float) -> dict[str, FloatArray]:
        """The means at normal places about these; shape (…)."""
        places = self.pool.places(np.asarray(centres)[..., None] + sd * NODES)
        share = WEIGHTS / WEIGHTS.sum()
        return {name: self._values[level][name][places] @ share for name in LINEAR}

    def _simulated(self, effects: FloatArray) -> dict[str, FloatArray]:
        """The means of RC and RC_atom over the last axis but one; effects of shape (…, cells, W)."""
        found = self.pool.retest(*self.pool.cells(self.draws, effects, self.layout))
        return {name: values.mean(axis=-1) for name, values in found.items()}

    def of_cells(
        self, personas: FloatArray, wordings: FloatArray, both: FloatArray
    ) -> dict[Population, list[dict[str, float]]]:
        """Each cell's truth, by population.

        Args:
            personas: Shape (P,): effects.
            wordings: Shape (W,).
            both: Shape (P, W).
        """
        found: dict[Population, list[dict[str, float]]] = {each: [] for each in Population}
        anyone = {level: self._anyone(level, wordings) for level in set(self.levels)}
        for n, level in enumerate(self.levels):
            effects = LEVEL_MEANS[level] + personas[n] + wordings + both[n]
            linear = {name: float(each.mean()) for name, each in self._linear(level, effects, 0.0).items()}
            cells = np.broadcast_to(effects, (CELLS_OF_A_TRUTH, len(effects)))
            simulated = {name: float(each) for name, each in self._simulated(cells).items()}
            found[Population.THESE].append(linear | simulated)
            places, values = self._by_persona[level]
            found[Population.WORDINGS].append(
                {name: float(np.interp(personas[n], places, values[name])) for name in METRICS}
            )
            found[Population.PERSONAS].append(anyone[level])
            found[Population.BOTH].append(self._overall[level])
        return found

    def _anyone(self, level: int, wordings: FloatArray) -> dict[str, float]:
        """Of personas on a level, under these wordings."""
        sd = float(np.hypot(self.spread.personas, self.spread.both))
        centres = LEVEL_MEANS[level] + wordings
        linear = {name: float(each.mean()) for name, each in self._linear(level, centres, sd).items()}
        simulated = self._simulated(centres + self._personas(PERSONAS_OF_A_TRUTH))
        return linear | {name: float(each) for name, each in simulated.items()}

    def _personas(self, count: int) -> FloatArray:
        """Shape (count, W): effects of personas, and of the wordings on each alone."""
        own = self.spread.personas * self.draws.standard_normal((count, 1))
        return np.asarray(own + self.spread.both * self.draws.standard_normal((count, self.layout.wordings)))

    @cached_property
    def _overall(self) -> dict[int, dict[str, float]]:
        """By level: of personas and wordings like these."""
        sd = float(np.linalg.norm(self.spread))
        found = {}
        for level in set(self.levels):
            linear = {
                n: float(each) for n, each in self._linear(level, np.array(LEVEL_MEANS[level]), sd).items()
            }
            shape = (CELLS_OF_THE_TRUTH, self.layout.wordings)
            wordings = self.spread.wordings * self.draws.standard_normal(shape)
            effects = LEVEL_MEANS[level] + self._personas(CELLS_OF_THE_TRUTH) + wordings
            found[level] = linear | {name: float(each) for name, each in self._simulated(effects).items()}
        return found

    @cached_property
    def _by_persona(self) -> dict[int, tuple[FloatArray, dict[str, FloatArray]]]:
        """By level: persona effects, and the truth over wordings there."""
        grid = np.linspace(-4, 4, 25) * self.spread.personas
        sd = float(np.hypot(self.spread.wordings, self.spread.both))
        shape = (len(grid), CELLS_OF_A_PLACE, self.layout.wordings)
        found = {}
        for level in set(self.levels):
            centres = LEVEL_MEANS[level] + grid
            simulated = self._simulated(centres[:, None, None] + sd * self.draws.standard_normal(shape))
            found[level] = grid, self._linear(level, centres, sd) | simulated
        return found
