"""RC_atom without the distance that small samples have by chance."""

import math
from typing import NamedTuple

from app.domain.metrics.chance_distance import chance_distance
from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.rc_atom import rc_atom
from app.domain.metrics.scores import CellScores

_ALIKE = 10**-9
"""A distance that exceeds another by so little does so by rounding."""


class BeyondChance(NamedTuple):
    """RC_atom beyond chance; each n counts pairs of runs.

    Attributes:
        corrected: From what the distances exceed those of chance by.
        ceiling: The RC_atom to be expected if all runs were alike.
    """

    corrected: Metric
    ceiling: Metric


def rc_atom_corrected(scores: CellScores) -> BeyondChance:
    """1 − 2 · √max(0, d² − d₀²) / (max − min), d₀ the mean distance if the cell's units were dealt to its runs at random.

    Distances of small samples add to those of the distributions roughly like independent errors: in squares. That treats the
    units of a run as exchangeable.

    Returns:
        The corrected one −1–1; n = pairs of runs that both have a scored unit.
    """
    overall = rc_atom(scores).overall
    if overall.value is None:
        return BeyondChance(overall, overall)
    width = scores.scale.width
    chance = chance_distance_of(scores)
    distance = min((1 - overall.value) / 2 * width, float(width))
    return BeyondChance(
        Metric.of(1 - 2 * excess(distance, chance) / width, overall.n),
        Metric.of(1 - 2 * chance / width, overall.n),
    )


def chance_distance_of(scores: CellScores) -> float:
    """The mean distance of a cell's runs, two or more of which are scored, if all of them were alike."""
    found = scores.run_histograms
    return min(chance_distance(found[found.sum(axis=1) > 0]), float(scores.scale.width))


def excess(distance: float, chance: float) -> float:
    """What a mean distance is without that of chance; 0 where it is no greater, rounding apart."""
    return math.sqrt(distance**2 - chance**2) if distance > chance + _ALIKE else 0.0


RC_ATOM_CORRECTED = MetricDefinition(
    name="rc_atom_corrected",
    label="RC_atom, corrected",
    summary="consistent between runs beyond chance",
    definition="RC_atom from √(d² − d₀²), where d is the mean distance of two runs and d₀ the one to be expected if the cell’s"
    " sentences had been dealt to its runs at random. Its ceiling is the RC_atom of runs that are alike.",
    source="Not in the papers",
    family=Family.CORRECTED,
    estimate=Estimate.EXCESS,
    compute=rc_atom_corrected,
    range=(-1.0, 1.0),
    n=("pair of runs", "pairs of runs"),
    parts=("ceiling",),
)
