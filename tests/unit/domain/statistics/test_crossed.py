"""Two models compared over personas and wordings: false alarms, and what a comparison says it would find."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import stdtrit

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import crossed_difference, detectable, joined
from app.domain.statistics.design import DesignCell, Error, Stratum
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.paired import paired_difference
from app.domain.statistics.power import Size
from benchmarks.inference.comparisons import NOISE, found_share
from benchmarks.inference.population import varied_mean

TABLE = np.random.default_rng(1).normal(0.1, 0.1, size=(6, 5)) + np.linspace(-0.2, 0.2, 5)


def cells(table: FloatArray, levels: int = 1) -> list[DesignCell]:
    return [
        DesignCell(f"p{n}", Stratum("essay", "E", str(n % levels)), varied_mean(row[:, None]))
        for n, row in enumerate(table)
    ]


def test_a_difference_under_these_wordings_may_be_none_under_others() -> None:
    found = crossed_difference(cells(TABLE), 1.0)
    names = [f"p{n}" for n in range(6)]
    by_persona = list(zip(names, TABLE.mean(axis=1).tolist(), strict=True))
    alone = paired_difference(by_persona, 1.0, PersonaSample(names, 0), 0)
    assert found is not None
    assert found.value == pytest.approx(alone.value)
    assert (alone.p_value or 1) < 0.05 < (found.p_value or 0)
    low, high = found.interval.ends or (1, 1)
    assert low < 0 < high
    assert (found.detectable or 0) > (alone.detectable or 1)


def test_its_interval_and_its_p_agree() -> None:
    for shift in np.linspace(0, 0.3, 13):
        found = crossed_difference(cells(TABLE + shift), 2.0)
        assert found is not None
        assert found.p_value is not None
        low, high = found.interval.ends or (0, 0)
        assert (found.p_value < 0.05) == (not low < 0 < high)


@pytest.mark.parametrize("table", [TABLE[:, :2], TABLE[:4], np.zeros((6, 5))])
def test_there_is_none_where_wordings_or_personas_tell_nothing(table: FloatArray) -> None:
    assert crossed_difference(cells(table), 1.0) is None
    assert crossed_difference([], 1.0) is None


def test_no_difference_that_the_scale_allows_says_so() -> None:
    found = crossed_difference(cells(TABLE), 0.05)
    assert found is not None
    assert found.detectable is None
    assert str(found.detectable_reason).startswith("beyond_scale:")


@pytest.mark.parametrize("repetitions", [300, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.parametrize("size", [Size(6, 1, 6, 5), Size(15, 3, 6, 5), Size(50, 1, 3, 5)])
def test_equal_models_are_seldom_called_different_however_wordings_act_on_them(
    size: Size, repetitions: int
) -> None:
    noise = NOISE._replace(wordings=0.1, both=0.05)
    share = found_share(np.random.default_rng(5), noise, size, 0.0, repetitions)
    assert share < 0.055 + 2 * (0.05 * 0.95 / repetitions) ** 0.5


def mean_squares(
    draws: np.random.Generator, personas: int, wordings: int, sd: float, count: int
) -> tuple[FloatArray, FloatArray, float]:
    """Variances that comparisons estimate, shape (count, 3), their degrees of freedom, and the true standard error."""
    within = (0.03**2 + 0.15**2 / 5) / personas / wordings
    expected = np.array([0.08**2 / personas + within, sd**2 / wordings + within, within])
    degrees = np.array([personas - 1.0, wordings - 1, (personas - 1) * (wordings - 1)])
    squares = expected * draws.chisquare(degrees, (count, 3)) / degrees
    return squares, np.broadcast_to(degrees, squares.shape), float((expected @ (1, 1, -1)) ** 0.5)


@pytest.mark.parametrize(
    ("personas", "wordings", "sd"),
    [
        (6, 3, 0.1),
        (50, 3, 0.02),
        (50, 3, 0.05),
        (50, 3, 0.1),
        (150, 3, 0.05),
        (50, 4, 0.05),
        (50, 6, 0.1),
        (36, 12, 0.1),
    ],
)
def test_few_wordings_that_look_alike_by_chance_do_not_make_equal_models_differ(
    personas: int, wordings: int, sd: float
) -> None:
    """With Satterthwaite's degrees of freedom 7.5 % of these differed with three wordings."""
    draws, count = np.random.default_rng(7), 60_000
    squares, degrees, error = mean_squares(draws, personas, wordings, sd, count)
    variances, freedom = joined(squares, degrees)
    found = np.abs(draws.standard_normal(count)) * error
    alarms = (found > stdtrit(freedom, 0.975) * np.sqrt(variances)).mean()
    assert 0.02 < alarms < 0.055


@pytest.mark.parametrize(
    ("personas", "wordings", "sd"),
    [(6, 3, 0.0), (6, 4, 0.05), (6, 6, 0.1), (30, 3, 0.05), (50, 3, 0.1), (150, 3, 0.02), (50, 12, 0.05)],
)
def test_what_a_comparison_says_it_would_find_is_found_in_four_of_five_cases(
    personas: int, wordings: int, sd: float
) -> None:
    """It was 86 % of the first three, and 75 % of 150 personas."""
    draws, count = np.random.default_rng(8), 20_000
    squares, degrees, _ = mean_squares(draws, personas, wordings, sd, 250)
    stated = [
        detectable([Error(*each, wordings) for each in zip(*comparison, strict=True)])
        for comparison in zip(squares, degrees, strict=True)
    ]
    squares, degrees, error = mean_squares(draws, personas, wordings, sd, count)
    variances, freedom = joined(squares, degrees)
    found_from = stdtrit(freedom, 0.975) * np.sqrt(variances) - error * draws.standard_normal(count)
    assert np.searchsorted(np.sort(found_from), stated).mean() / count == pytest.approx(0.8, abs=0.045)


def test_what_it_says_follows_steadily_from_how_far_wordings_lie_apart() -> None:
    """Between a rule for wordings that hardly matter and one for those that are most of the noise there is no step."""
    found = [
        detectable([Error(1e-4, 14, 15), Error(share * 1e-4, 2, 3), Error(1e-5, 28, 15)])
        for share in np.linspace(0.1, 3, 59)
    ]
    assert all(0 < after / before - 1 < 0.1 for before, after in pairwise(found))
