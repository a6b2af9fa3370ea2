"""95 % intervals cover the truth in 93 to 97 of 100 cases, on simulated data whose truth is known."""

import numpy as np
import pytest

from app.domain.statistics.design import Population
from benchmarks.inference.coverage import EFFECTS, coverage
from benchmarks.inference.population import Layout, Pool

LOW, HIGH = 0.93, 0.97


@pytest.mark.parametrize("repetitions", [60, pytest.param(600, marks=pytest.mark.long)])
def test_intervals_cover_the_population_that_they_name(repetitions: int) -> None:
    pool = Pool.drawn(np.random.default_rng(0))
    rows = coverage(pool, EFFECTS["large"], Layout(6, 5), 3, repetitions, seed=5)
    chance = 3 * (0.95 * 0.05 / repetitions) ** 0.5
    printed = {key: row for key, row in rows.items() if row.printed}
    assert {population for *_, population in printed} == set(Population)
    for (personas, metric, population), row in printed.items():
        assert row.coverage > LOW - chance, (personas, metric, population)
        if metric != "acc":  # of few values
            assert row.coverage < HIGH + chance, (personas, metric, population)


def test_an_interval_over_these_wordings_misses_what_is_true_of_others() -> None:
    pool = Pool.drawn(np.random.default_rng(0))
    rows = coverage(pool, EFFECTS["large"], Layout(6, 5), 1, 60, seed=6)
    widths = {population: rows[15, "mean", population].width / 60 for population in Population}
    assert widths[Population.THESE] < widths[Population.WORDINGS] / 3
    assert widths[Population.PERSONAS] < widths[Population.BOTH]
