"""Calibrated figures of a judge who errs to one side, over many rounds whose truth is known."""

import pytest

from app.domain.labels.calibration import MetricName
from app.domain.statistics.design import Population
from benchmarks.inference import calibrated
from benchmarks.inference.biased_judge import coverage

LONG = 1000


@pytest.mark.parametrize(
    "repetitions", [80, pytest.param(LONG, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
@pytest.mark.parametrize("metric", ["mean", "acc_atom"])
def test_hold_the_truth_and_are_narrower_than_labels_alone(metric: MetricName, repetitions: int) -> None:
    found = coverage(metric, 200, repetitions)
    assert found.covered is not None
    assert found.width is not None
    chance = 3 * (0.95 * 0.05 / repetitions) ** 0.5
    error = found.width / 4 / repetitions**0.5
    assert abs(found.judge_bias) > 0.03
    assert abs(found.bias) < 0.001 + 3 * error
    assert found.covered > 0.95 - chance
    assert found.covered_in_two > 0.95 - chance
    assert found.width < 0.7 * found.width_of_labels
    if metric == "acc_atom":  # what the second of two rounds is divided for
        assert found.width_in_two < 0.95 * found.width


def test_hold_it_for_more_than_these_texts_where_the_judges_own_do_not() -> None:
    found = calibrated.coverage(personas=6, levels=3, runs=5, repetitions=40)
    own, people = (found[whose, "mean", Population.THESE] for whose in ("judge", "calibrated"))
    assert own.coverage < 0.4
    assert people.coverage > 0.85
    assert found["calibrated", "acc_atom", Population.PERSONAS].coverage > 0.85
    few = calibrated.coverage(personas=3, levels=1, runs=5, repetitions=2)
    assert few["calibrated", "mean", Population.PERSONAS].reasons == {"too_few_personas"}
