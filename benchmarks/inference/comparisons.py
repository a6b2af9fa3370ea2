"""False alarms and power of comparisons of two models over personas and wordings, whose noise is known."""

from typing import NamedTuple

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import crossed_difference
from app.domain.statistics.design import DesignCell, Population, Stratum
from app.domain.statistics.paired import ALPHA, PairedDifference, sign_flip_p_value
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


def compared(draws: np.random.Generator, noise: Noise, size: Size, true: float) -> PairedDifference:
    """One comparison of two models that truly differ by so much, with normal effects."""
    found = crossed_difference(differences(draws, noise, size, true), 1.0)
    assert found is not None
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


def found_share(
    draws: np.random.Generator, noise: Noise, size: Size, true: float, repetitions: int
) -> tuple[float, float]:
    """The share of comparisons that call the models different, 0–1, and the mean difference that they say they would find."""
    all_ = [compared(draws, noise, size, true) for _ in range(repetitions)]
    shown = [each.p_value is not None and each.p_value <= ALPHA for each in all_]
    return float(np.mean(shown)), float(np.mean([each.detectable or np.nan for each in all_]))


def stated_power(draws: np.random.Generator, size: Size, repetitions: int) -> float:
    """How often another comparison finds the difference that one states, each with noise of its own."""
    stated = [compared(draws, NOISE, size, 0.0).detectable or np.nan for _ in range(repetitions)]
    others = [compared(draws, NOISE, size, true).p_value for true in stated]
    return float(np.mean([p is not None and p <= ALPHA for p in others]))


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
            made = crossed_difference(cells, 1.0)
            p_value = 1.0 if made is None else made.p_value
        else:
            p_value = sign_flip_p_value(np.array([cell.figure.value for cell in cells]), seed=0)
        found += p_value is not None and p_value <= ALPHA
    return planned, stated, found / repetitions
