"""Many models at once: corrections, intervals and ranks."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from app.domain.metrics.interval import Interval
from app.domain.statistics.design import DesignCell, Error, Population, Stratum
from app.domain.statistics.models import (
    DRAWS,
    PairOfModels,
    compare_all,
    equal_models,
    ranks,
    shaffer,
)
from app.domain.statistics.power import Size
from app.domain.statistics.variability import Variability
from benchmarks.inference.comparisons import NOISE
from benchmarks.inference.models import cells, family

SIZE = Size(15, 3, 6, 5)


def pair(a: str, b: str, value: float = 0.0, p: float = 1.0) -> PairOfModels:
    return PairOfModels(a, b, value, Interval.missing("x: y"), p, p)


def plain(values: dict[str, list[float]], levels: int = 1) -> dict[str, list[DesignCell]]:
    """Models' figures by persona, of which nothing more is known."""
    return {
        model: [
            DesignCell(f"p{n}", Stratum("essay", "E", str(n % levels)), Variability(value))
            for n, value in enumerate(own)
        ]
        for model, own in values.items()
    }


def test_shaffers_factors_are_those_of_his_table() -> None:
    # Shaffer (1986), four means: 6, 3, 3, 3, 2, 1; Holm's would be 6, 5, 4, 3, 2, 1.
    p_values = [0.001, 0.002, 0.003, 0.004, 0.02, 0.03]
    assert shaffer(p_values, 4) == pytest.approx([0.006, 0.006, 0.009, 0.012, 0.04, 0.04])
    assert shaffer([0.03], 2) == [0.03]
    assert shaffer([0.5, None, 0.001], 3) == [pytest.approx(0.5), None, pytest.approx(0.003)]


def test_models_that_cannot_be_told_apart_share_ranks() -> None:
    models = ["a", "b", "c", "d"]
    apart = [pair("a", "c", 0.2, 0.01), pair("d", "a", -0.3, 0.01), pair("b", "d", 0.2, 0.01)]
    alike = [pair("a", "b"), pair("b", "c"), pair("c", "d")]
    assert ranks(models, apart + alike) == {"a": (1, 2), "b": (1, 3), "c": (2, 4), "d": (3, 4)}
    assert ranks(models, []) == dict.fromkeys(models, (1, 4))


@pytest.mark.parametrize(("models", "degrees"), [(2, 14), (6, 30)])
def test_the_smallest_p_of_equal_models_is_that_of_tukeys_range(models: int, degrees: int) -> None:
    # Each pair has a variance of its own here, and one for all there: with many degrees of freedom that makes little difference.
    smallest = np.sort(equal_models(models, [Error(1.0, degrees, degrees + 1)]).smallest_p)
    limit = smallest[int(0.05 * DRAWS)]
    t = stats.t.isf(limit / 2, degrees)
    assert stats.studentized_range.sf(t * 2**0.5, models, degrees) == pytest.approx(0.05, abs=0.012)


def test_a_pairs_difference_and_the_population_are_those_of_its_cells() -> None:
    draws = np.random.default_rng(1)
    given = cells(draws, NOISE, SIZE, [0.2, 0.8, 0.8])
    found = compare_all(given, 1.0)
    assert found.population is Population.BOTH
    assert [(each.a, each.b) for each in found.pairs] == [("m0", "m1"), ("m0", "m2"), ("m1", "m2")]
    own = [one.figure.value - other.figure.value for one, other in zip(given["m0"], given["m1"], strict=True)]
    assert found.pairs[0].value == pytest.approx(np.mean(own))
    assert [each.better for each in found.pairs] == ["m1", "m2", None]
    assert (
        compare_all(cells(draws, NOISE, SIZE, [0.2, 0.8], wordings=False), 1.0).population
        is Population.PERSONAS
    )


def test_intervals_exclude_zero_where_models_are_told_apart_and_nowhere_else() -> None:
    draws = np.random.default_rng(2)
    for _ in range(10):
        found = compare_all(cells(draws, NOISE, SIZE, [0.5, 0.55, 0.6, 0.65]), 1.0, metrics=2)
        for each in found.pairs:
            assert each.interval.low is not None
            assert each.interval.high is not None
            assert (not each.interval.low < 0 < each.interval.high) == (each.better is not None)


def test_each_further_metric_of_a_family_makes_p_values_larger_and_intervals_wider() -> None:
    given = cells(np.random.default_rng(3), NOISE, SIZE, [0.5, 0.55, 0.6])
    one, six = compare_all(given, 1.0), compare_all(given, 1.0, metrics=6)
    for alone, among in zip(one.pairs, six.pairs, strict=True):
        assert among.p == alone.p
        assert among.corrected == pytest.approx(min(1.0, 6 * (alone.corrected or 0.0)))
        assert (among.interval.high or 0) > (alone.interval.high or 0)
    assert (six.detectable or 0) > (one.detectable or 1)


def test_a_pair_with_an_obstacle_shows_nothing_and_the_others_do() -> None:
    given = cells(np.random.default_rng(4), NOISE, SIZE, [0.2, 0.5, 0.8])
    found = compare_all(given, 1.0, {("m0", "m1"): "other_length: words"})
    assert (found.pairs[0].p, found.pairs[0].interval.reason) == (None, "other_length: words")
    assert [each.better for each in found.pairs] == [None, "m2", "m2"]
    every = dict.fromkeys(combinations(given, 2), "other_length: words")
    nothing = compare_all(given, 1.0, every)
    assert nothing.smallest_p is nothing.detectable is None
    assert nothing.detectable_reason == "other_length: words"


def test_one_persona_on_a_level_leaves_the_permutation_of_signs() -> None:
    draws = np.random.default_rng(5)
    values = {name: (level + draws.normal(0, 0.01, 11)).tolist() for name, level in (("a", 0.1), ("b", 0.9))}
    values["c"] = values["b"]
    found = compare_all(plain(values, levels=6), 1.0)
    assert found.population is Population.PERSONAS
    assert found.smallest_p == 2**-10
    assert [each.p for each in found.pairs] == pytest.approx([2**-10, 2**-10, 1])
    # Shaffer: of three pairs all may be equal, or one.
    assert [each.corrected for each in found.pairs] == pytest.approx([3 * 2**-10, 3 * 2**-10, 1])
    assert [each.better for each in found.pairs] == ["b", "c", None]
    assert {each.interval.reason for each in found.pairs} == {found.detectable_reason}
    assert str(found.detectable_reason).startswith("one_persona_on_a_level: ")


def test_six_personas_that_all_differ_alike_show_no_difference_of_many_models_and_thirty_do() -> None:
    for personas, better in ((6, None), (30, "b")):
        draws = np.random.default_rng(6)
        values = {"a": [0.0] * personas, "b": [1.0] * personas}
        assert compare_all(plain(values), 1.0).pairs[0].better == "b"  # p = 1/32 of a single pair
        values |= {f"c{n}": draws.normal(0.5, 0.2, personas).tolist() for n in range(4)}
        (found,) = [each for each in compare_all(plain(values), 1.0).pairs if (each.a, each.b) == ("a", "b")]
        assert found.better == better
        assert found.interval.low is not None
        assert found.interval.high is not None
        assert (found.interval.high < 0) == (better is not None)


@pytest.mark.parametrize("wordings", [True, False])
@pytest.mark.parametrize(
    "repetitions", [60, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_of_six_equal_models_no_two_are_said_to_differ(repetitions: int, *, wordings: bool) -> None:
    noise = NOISE if wordings else NOISE._replace(wordings=0.0, both=0.0)
    found = family(np.random.default_rng(9), noise, SIZE, [[0.0] * 6] * repetitions, wordings=wordings)
    limit = 0.05 + 2 * (0.05 * 0.95 / repetitions) ** 0.5
    assert found.false_alarms <= limit
    assert found.intervals_missed <= limit
