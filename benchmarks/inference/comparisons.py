"""False alarms and power of comparisons of two models over personas and wordings, whose noise is known."""

from typing import NamedTuple

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import crossed_difference
from app.domain.statistics.design import DesignCell, Stratum
from app.domain.statistics.paired import ALPHA, PairedDifference
from benchmarks.inference.population import varied_mean


class Noise(NamedTuple):
    """Standard deviations of two models' differences.

    Attributes:
        personas: Of personas on one level.
        wordings: Of wordings, the same for all personas.
        both: Of a wording's effect on one persona alone.
        runs: Of single runs.
    """

    personas: float
    wordings: float
    both: float
    runs: float


class Plan(NamedTuple):
    """How large a comparison is.

    Attributes:
        personas: In all.
        levels: Among which they are shared out evenly.
        wordings: Persona instructions.
        iterations: Runs for each.
    """

    personas: int
    levels: int
    wordings: int
    iterations: int


NOISE = Noise(personas=0.08, wordings=0.05, both=0.03, runs=0.15)
PLANS = (Plan(6, 1, 6, 5), Plan(15, 3, 6, 5), Plan(50, 1, 6, 5))
EFFECTS = (0.0, 0.05, 0.1)
"""Standard deviations of the effect of wording × model."""


def compared(draws: np.random.Generator, noise: Noise, plan: Plan, true: float) -> PairedDifference:
    """One comparison of two models that truly differ by so much, with normal effects."""
    columns = noise.wordings * draws.standard_normal(plan.wordings)
    cells = []
    for persona in range(plan.personas):
        own = true + noise.personas * draws.standard_normal() + columns
        own = own + noise.both * draws.standard_normal(plan.wordings)
        runs: FloatArray = own[:, None] + noise.runs * draws.standard_normal((plan.wordings, plan.iterations))
        stratum = Stratum("essay", "E", str(persona % plan.levels))
        cells.append(DesignCell(f"p{persona}", stratum, varied_mean(runs)))
    found = crossed_difference(cells, 1.0)
    assert found is not None
    return found


def found_share(
    draws: np.random.Generator, noise: Noise, plan: Plan, true: float, repetitions: int
) -> tuple[float, float]:
    """The share of comparisons that call the models different, 0–1, and the mean difference that they say they would find."""
    all_ = [compared(draws, noise, plan, true) for _ in range(repetitions)]
    shown = [each.p_value is not None and each.p_value <= ALPHA for each in all_]
    return float(np.mean(shown)), float(np.mean([each.detectable or np.nan for each in all_]))


def stated_power(draws: np.random.Generator, plan: Plan, repetitions: int) -> float:
    """How often another comparison finds the difference that one states, each with noise of its own."""
    stated = [compared(draws, NOISE, plan, 0.0).detectable or np.nan for _ in range(repetitions)]
    others = [compared(draws, NOISE, plan, true).p_value for true in stated]
    return float(np.mean([p is not None and p <= ALPHA for p in others]))
