"""ACC_atom without what chance gives a level."""

from fractions import Fraction

from app.domain.instruments.dimension import Scale
from app.domain.metrics.acc_atom import run_shares
from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores, RunValues


def acc_atom_corrected(scores: CellScores) -> Metric:
    """(ACC_atom − c) / (1 − c), c the share of the scale's scores that lie in the persona's level.

    The form of Cohen's κ with chance uniform over scores, as Bennett, Alpert and Goldstein's S (1954).

    Returns:
        −c / (1 − c) to 1, 0 for scores without regard to the persona; n = runs with a scored unit.
    """
    return Metric.average(_run_values(scores).values, NO_SCORED_UNIT)


def chance_share(scale: Scale, level: int) -> Fraction:
    """The share of the scale's scores that lie in a level; under 1, as a scale has two levels or more."""
    indices = [scale.level_index(score, 1) for score in range(scale.minimum, scale.maximum + 1)]
    return Fraction(indices.count(level), scale.size)


def beyond_chance(share: float, chance: Fraction) -> float:
    """A share on a scale from 0, chance, to 1."""
    return (share - float(chance)) / float(1 - chance)


def _run_values(scores: CellScores) -> RunValues:
    chance = float(chance_share(scores.scale, scores.level))
    shares = run_shares(scores)
    return RunValues((shares.values - chance) / (1 - chance), shares.runs)


def _range(scores: CellScores) -> tuple[float, float]:
    return beyond_chance(0.0, chance_share(scores.scale, scores.level)), 1.0


ACC_ATOM_CORRECTED = MetricDefinition(
    name="acc_atom_corrected",
    label="ACC_atom, corrected",
    summary="in character beyond chance",
    definition="ACC_atom on a scale from 0, chance, to 1: (ACC_atom − c) ÷ (1 − c), where c is the share of the scale’s scores in"
    " the persona’s level.",
    source="Not in the papers; Bennett, Alpert and Goldstein (1954)",
    family=Family.CORRECTED,
    estimate=Estimate.MEAN,
    compute=acc_atom_corrected,
    by_run=_run_values,
    range=(-2.0, 1.0),  # c is two thirds at most: the wider of two levels on three scores
    range_in_cell=_range,
)
