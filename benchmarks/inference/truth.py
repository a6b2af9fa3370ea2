"""The true figures of a drawn design, for each population that an interval can speak of."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.design import Population
from benchmarks.inference.population import LEVEL_MEANS, Layout, Pool, Spread

LINEAR = ("mean", "acc", "acc_atom", "ic_atom")
"""Means of runs' values: their truth needs no simulation."""
CELLS_OF_A_TRUTH = 120
PERSONAS_OF_A_TRUTH = 1_000
CELLS_OF_THE_TRUTH = 5_000


@dataclass(frozen=True)
class Truth:
    """What is true of cells drawn from a pool.

    Attributes:
        pool: The runs.
        spread: Of personas and wordings.
        layout: Of a cell's runs; RC and RC_atom are the means over repetitions of this layout, and NaN over wordings, of which
            there are too few for them.
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
        """The means at normal places about these; shape (…). Exact: a pool's places differ by chance, so that no quadrature will do."""
        if sd == 0:
            places = self.pool.places(np.asarray(centres))
            return {name: self._values[level][name][places] for name in LINEAR}
        below = ndtr((self.pool.edges - np.asarray(centres)[..., None]) / sd)
        ends = np.zeros((*below.shape[:-1], 1))
        share = np.diff(below, axis=-1, prepend=ends, append=ends + 1)
        return {name: share @ self._values[level][name] for name in LINEAR}

    @property
    def _of_wordings(self) -> float:
        return float(np.hypot(self.spread.wordings, self.spread.both))

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
            others = self._linear(level, np.array(LEVEL_MEANS[level] + personas[n]), self._of_wordings)
            found[Population.WORDINGS].append(
                dict.fromkeys(simulated, math.nan) | {name: float(each) for name, each in others.items()}
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
