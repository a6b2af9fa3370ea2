"""Nominal 95 % intervals cover the truth in 93 to 97 of 100 cases, on simulated data whose truth is known."""

import numpy as np
import pytest

from app.domain.statistics.cells import estimate_cell
from benchmarks.coverage import DESIGNS, METRICS, RUNS, cell_coverage, simulated_cell, total_coverage

LOW, HIGH = 0.93, 0.97
LONG = 1000
MIXED = DESIGNS["mixed"]


def chance(repetitions: int) -> float:
    """Two standard errors of a share of 95 %."""
    return float(2 * (0.95 * 0.05 / repetitions) ** 0.5)


@pytest.mark.parametrize("repetitions", [100, pytest.param(LONG, marks=pytest.mark.long)])
def test_a_cells_intervals_cover_what_can_be_computed_by_hand(repetitions: int) -> None:
    # Scores 1 to 5 have the shares 0.05, 0.1, 0.15, 0.3 and 0.4; level high is 4 and 5.
    truths = {"mean": 0.05 + 0.2 + 0.45 + 1.2 + 2.0, "acc_atom": 0.7}
    assert truths["mean"] == pytest.approx(sum(n * share for n, share in enumerate(MIXED.shares, 1)))
    draws = np.random.default_rng(4)
    runs = 30
    hits = dict.fromkeys(truths, 0)
    for seed in range(repetitions):
        scores = {"judge": simulated_cell(draws, MIXED, runs)}
        found = estimate_cell(scores, np.arange(runs), seed, ("m", "p", "t")).metrics
        for name, truth in truths.items():
            ends = found[name].ci95
            assert ends is not None
            low, high = ends
            hits[name] += low <= truth <= high
    for name, count in hits.items():
        assert LOW - chance(repetitions) < count / repetitions < HIGH + chance(repetitions), name


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("design", DESIGNS)
def test_all_metrics_of_a_cell_are_covered(design: str, runs: int) -> None:
    found = cell_coverage(np.random.default_rng(5), DESIGNS[design], runs, LONG)
    assert set(found) == set(METRICS)
    for name, share in found.items():
        assert LOW - chance(LONG) < share, name
        # Five runs' ACC has six values: whatever covers it in 93 cases of 100 may do so in more than 97.
        assert share < HIGH + chance(LONG) or (name, runs) == ("acc", min(RUNS)), name


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_totals_over_personas_and_over_runs_are_covered() -> None:
    found = total_coverage(np.random.default_rng(6), 15, LONG)
    assert set(METRICS) < set(found)
    for name, share in found.items():
        assert LOW - chance(LONG) < share < HIGH + chance(LONG), name
