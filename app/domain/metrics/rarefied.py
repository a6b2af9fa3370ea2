"""RC_atom and IC_atom at a given number of sentences: what two texts of different length can be compared by."""

import numpy as np

from app.domain.metrics.hypergeometric import probability
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.metrics.scores import CellScores

FEWEST = 2


def run_units(scores: CellScores) -> IntArray:
    """Scored units of each run that has two or more."""
    counts = scores.run_histograms.sum(axis=1)
    return np.asarray(counts[counts >= FEWEST])


def rarefied_rc_atom(scores: CellScores, units: int) -> float | None:
    """The RC_atom to be expected if of each run only so many of its scored units were kept at random.

    Rarefaction (Hurlbert, 1971). How many of a run's kept units lie at or below a score is hypergeometric, so the mean distance of
    two runs is exact: at each score, E|X − Y| = Σ F (1 − G) + G (1 − F) over the distribution functions F and G of X and Y.

    Returns:
        −1–1; ``None`` where fewer than two runs have so many units.
    """
    counts = scores.run_histograms.sum(axis=1)
    used = scores.run_histograms[counts >= units]
    if len(used) < FEWEST:
        return None
    below = used.cumsum(axis=1)[:, :-1, None]
    all_units = used.sum(axis=1)[:, None, None]
    kept = np.arange(units)
    functions = probability(all_units, below, np.array(units), kept).cumsum(axis=2)
    sums = functions.sum(axis=0)
    apart = (len(used) - 1) * sums - (sums**2 - (functions**2).sum(axis=0))
    pairs = len(used) * (len(used) - 1) / 2
    distance = max(0.0, float(apart.sum())) / units / pairs
    return 1.0 - 2.0 * distance / scores.scale.width


def rarefied_ic_atom(scores: CellScores) -> float | None:
    """The IC_atom to be expected if of each response only two of its scored units were kept at random: 1 − E|x − y| / (max − min).

    Returns:
        0–1; ``None`` where no response has two scored units.
    """
    several = scores.counts > 1
    counts = scores.counts[several]
    below = scores.histograms[several].cumsum(axis=1)[:, :-1]
    # In how many of its pairs of units a score lies between the two, added up over the scores.
    distances = (below * (counts[:, None] - below)).sum(axis=1) / (counts * (counts - 1) / 2)
    means: FloatArray = scores.run_means(distances, several).values
    return 1.0 - float(means.mean()) / scores.scale.width if len(means) else None
