"""False alarms and power of comparisons of two models over personas and wordings, whose noise is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import detectable
from app.domain.statistics.design import (
    DesignCell,
    Error,
    Population,
    Stratum,
    components,
    crossed,
    of_both,
    p_value,
)
from app.domain.statistics.paired import ALPHA, sign_flip_p_value
from app.domain.statistics.power import Noise, Size, power, with_enough_personas
from benchmarks.inference.models import family
from benchmarks.inference.population import varied_mean

NOISE = Noise(personas=0.08, wordings=0.05, both=0.03, runs=0.15)
SIZES = (Size(6, 1, 6, 5), Size(15, 3, 6, 5), Size(50, 1, 6, 5), Size(15, 1, 3, 5), Size(50, 1, 3, 5))
EFFECTS = (0.0, 0.05, 0.1)
"""Standard deviations of the effect of wording × model."""


class Design(NamedTuple):
    """What is planned: see :func:`app.domain.statistics.power.with_enough_personas`."""

    noise: Noise
    size: Size
    population: Population
    difference: float
    power: float
    models: int = 2


PLANNED = (
    Design(NOISE, Size(0, 3, 6, 5), Population.BOTH, 0.08, 0.8),
    Design(NOISE, Size(0, 1, 12, 2), Population.BOTH, 0.06, 0.8),
    Design(NOISE._replace(wordings=0.0, levels=0.05), Size(0, 3, 2, 5), Population.PERSONAS, 0.1, 0.8),
    Design(NOISE._replace(wordings=0.0, levels=0.05), Size(0, 3, 1, 5), Population.PERSONAS, 0.06, 0.9),
    Design(NOISE, Size(0, 3, 6, 5), Population.BOTH, 0.15, 0.8, models=6),
    Design(NOISE, Size(0, 3, 6, 5), Population.PERSONAS, 0.06, 0.8, models=4),
)
"""The third has 12 personas, of whose signs all patterns are tried."""


def parts(cells: Sequence[DesignCell]) -> list[Error]:
    """What the variance of the mean of these differences consists of."""
    found = of_both(components(cells))
    assert not isinstance(found, str)
    return found


def differences(draws: np.random.Generator, noise: Noise, size: Size, true: float) -> list[DesignCell]:
    """Two models' differences by persona; levels lie evenly apart."""
    columns = noise.wordings * draws.standard_normal(size.wordings)
    levels = np.arange(size.levels) - (size.levels - 1) / 2
    levels = noise.levels * levels / max(levels.std(), 0.5)
    cells = []
    for persona in range(size.personas):
        own = true + levels[persona % size.levels] + noise.personas * draws.standard_normal() + columns
        own = own + noise.both * draws.standard_normal(size.wordings)
        runs: FloatArray = own[:, None] + noise.runs * draws.standard_normal((size.wordings, size.iterations))
        stratum = Stratum("essay", "E", str(persona % size.levels))
        cells.append(DesignCell(f"p{persona}", stratum, varied_mean(runs)))
    return cells


def found_share(draws: np.random.Generator, noise: Noise, size: Size, true: float, repetitions: int) -> float:
    """The share of comparisons that call the models different, 0–1."""
    return float(np.mean([_found(differences(draws, noise, size, true)) for _ in range(repetitions)]))


def stated_power(draws: np.random.Generator, noise: Noise, size: Size, repetitions: int) -> float:
    """How often another comparison finds the difference that one states, each with noise of its own."""
    stated = [detectable(parts(differences(draws, noise, size, 0.0))) for _ in range(repetitions)]
    return float(np.mean([_found(differences(draws, noise, size, true)) for true in stated]))


def _found(cells: Sequence[DesignCell]) -> bool:
    value = float(np.mean([cell.figure.value for cell in cells]))
    return p_value(value, crossed(*parts(cells))) <= ALPHA


def planned_power(
    draws: np.random.Generator, design: Design, repetitions: int
) -> tuple[Size, float | str, float]:
    """The size that a plan names for a difference, its power by the plan, and in which share of comparisons it is found."""
    noise, size, population, difference, wanted, models = design
    planned = with_enough_personas(noise, size, population, difference, wanted, models)
    assert planned is not None
    stated = power(noise, planned, population, difference, models)
    if models > 2:
        over_wordings = population is Population.BOTH
        if not over_wordings:
            noise = noise._replace(wordings=0.0)
        true = [[difference] + [0.0] * (models - 1)] * repetitions
        return planned, stated, family(draws, noise, planned, true, wordings=over_wordings).told_apart
    found = 0
    for _ in range(repetitions):
        cells = differences(draws, noise, planned, difference)
        if population is Population.BOTH:
            found += _found(cells)
        else:
            p_of_signs = sign_flip_p_value(np.array([cell.figure.value for cell in cells]), seed=0)
            found += p_of_signs <= ALPHA
    return planned, stated, found / repetitions
