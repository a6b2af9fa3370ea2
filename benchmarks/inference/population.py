"""Cells drawn from a known population: personas within levels, wordings crossed with them, runs and sentences."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.metrics.scores import CellScores, RunValues
from app.domain.statistics.variability import Variability, of_mean

METRICS = ("mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom")
LEVEL_MEANS = (2.2, 3.0, 4.0)
SCORES = np.arange(1, 6)
WIDTH = 4
STEP = 0.04
POOL = 400
"""Runs drawn beforehand at each place: they are the population, so that its truth is exact."""


class Spread(NamedTuple):
    """Standard deviations, in points of the score.

    Attributes:
        personas: Within a level.
        wordings: Of a wording's effect, shared by all personas.
        both: Of a wording's effect on one persona alone.
    """

    personas: float
    wordings: float
    both: float


class Layout(NamedTuple):
    """A cell's runs."""

    wordings: int
    iterations: int

    @property
    def runs(self) -> int:
        """All of them."""
        return self.wordings * self.iterations

    @property
    def numbers(self) -> IntArray:
        """Shape (K,): each run's wording."""
        return np.repeat(np.arange(self.wordings), self.iterations)


@dataclass(frozen=True)
class Pool:
    """Runs of a population, at each place of a grid of what persona and wording add up to.

    Attributes:
        histograms: Shape (G, POOL, 5): a run's sentences by score.
        low: The grid's first place.
    """

    histograms: IntArray
    low: float

    @classmethod
    def drawn(cls, draws: np.random.Generator, run_sd: float = 0.25, sentence_sd: float = 0.9) -> "Pool":
        """Runs of 8 to 16 sentences, of which one in ten is not applicable."""
        grid = np.arange(0.0, 6.0, STEP)
        sentences = draws.integers(8, 17, size=(len(grid), POOL, 1))
        centres = grid[:, None] + run_sd * draws.standard_normal((len(grid), POOL))
        scores = np.rint(
            centres[..., None] + sentence_sd * draws.standard_normal((*centres.shape, 16), dtype=np.float32)
        )
        counts = (np.arange(16) < sentences) & (draws.random(scores.shape, dtype=np.float32) > 0.1)
        counts[..., :2] = True
        clipped = np.clip(scores, 1, 5)
        found = np.stack([((clipped == score) & counts).sum(axis=-1) for score in SCORES], axis=-1)
        return cls(found, float(grid[0]))

    @property
    def edges(self) -> FloatArray:
        """Shape (G − 1,): where the grid's places meet."""
        return np.asarray(self.low + STEP * (np.arange(1, len(self.histograms)) - 0.5))

    def places(self, effects: FloatArray) -> IntArray:
        """Where on the grid these lie."""
        found = np.rint((effects - self.low) / STEP).astype(np.int64)
        return np.clip(found, 0, len(self.histograms) - 1)

    @cached_property
    def counts(self) -> IntArray:
        """Shape (G, POOL): sentences."""
        return np.asarray(self.histograms.sum(axis=-1))

    @cached_property
    def means(self) -> FloatArray:
        """Shape (G, POOL): runs' mean scores."""
        return np.asarray(self.histograms @ SCORES / self.counts)

    @cached_property
    def consistency(self) -> FloatArray:
        """Shape (G, POOL): runs' IC_atom."""
        squares = self.histograms @ SCORES**2 / self.counts
        return np.asarray(1 - 2 * np.sqrt(np.maximum(0, squares - self.means**2)) / WIDTH)

    @cached_property
    def cdfs(self) -> FloatArray:
        """Shape (G, POOL, 4): runs' cumulative distributions."""
        return np.asarray(self.histograms.cumsum(axis=-1)[..., :-1] / self.counts[..., None])

    def values(self, level: int) -> dict[str, FloatArray]:
        """By metric that is a mean of runs' values: shape (G, POOL)."""
        low, high = 1 + WIDTH * level / 3, 1 + WIDTH * (level + 1) / 3
        inside = (self.means >= low - 1e-12) & ((self.means < high - 1e-12) | (level == 2))
        lowest = (0, 2, 3)[level]
        hits = self.histograms[..., lowest : (2, 3, 5)[level]].sum(axis=-1) / self.counts
        return {"mean": self.means, "acc": inside * 1.0, "acc_atom": hits, "ic_atom": self.consistency}

    def cells(
        self, draws: np.random.Generator, effects: FloatArray, layout: Layout
    ) -> tuple[IntArray, IntArray]:
        """Which runs cells have: places and numbers in the pool, both of shape (…, K).

        Args:
            draws: Of the runs.
            effects: Shape (…, W): what persona and wording add up to.
            layout: Its W wordings.
        """
        places = np.repeat(self.places(effects), layout.iterations, axis=-1)
        return places, draws.integers(POOL, size=places.shape)

    def scores(self, places: IntArray, chosen: IntArray, level: int, layout: Layout) -> CellScores:
        """One cell of these runs."""
        return CellScores(
            scale=Scale(),
            level=level,
            runs=np.arange(layout.runs),
            instructions=layout.numbers,
            histograms=self.histograms[places, chosen],
            excluded={},
        )

    def retest(self, places: IntArray, chosen: IntArray) -> dict[str, FloatArray]:
        """Many cells' RC and RC_atom at once, each of shape (…)."""
        cdfs = np.sort(self.cdfs[places, chosen], axis=-2)
        runs = places.shape[-1]
        weights = 2 * np.arange(runs) - runs + 1
        pairs = runs * (runs - 1) / 2
        return {
            "rc": 1 - 2 * self.means[places, chosen].std(axis=-1) / WIDTH,
            "rc_atom": 1 - 2 * np.einsum("k,...kx->...", weights, cdfs) / pairs / WIDTH,
        }


def varied_mean(runs: FloatArray) -> Variability:
    """The mean of runs' values, shape (wordings, iterations), and how it varies."""
    numbers = np.arange(runs.size)
    return of_mean(RunValues(runs.ravel(), numbers), numbers // runs.shape[1], numbers)
