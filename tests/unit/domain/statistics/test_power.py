"""How often a planned comparison finds a difference, against known formulae and the comparisons themselves."""

import math
import time
from itertools import product

import numpy as np
import pytest

from app.domain.statistics.design import Population
from app.domain.statistics.paired import sign_flip_p_value
from app.domain.statistics.power import Noise, Size, level_of_pairs, power, with_enough_personas
from benchmarks.inference.comparisons import NOISE, PLANNED, Design, differences, planned_power

SIZE = Size(15, 3, 6, 5)
ONLY_PERSONAS = Noise(personas=1.0, wordings=0.0, both=0.0, runs=0.0)


@pytest.mark.parametrize(
    ("design", "repetitions", "within"),
    [
        *((design, 200, 0.09) for design in PLANNED[:4]),
        (PLANNED[5], 80, 0.1),
        *(pytest.param(design, 2000, 0.035, marks=pytest.mark.long) for design in PLANNED),
    ],
)
def test_what_is_planned_is_found_as_often_as_stated(design: Design, repetitions: int, within: float) -> None:
    _, stated, found = planned_power(np.random.default_rng(1), design, repetitions)
    assert isinstance(stated, float)
    assert stated >= design.power
    assert abs(found - stated) < within


def test_personas_alone_are_tested_by_students_t_where_wordings_have_no_effect() -> None:
    # scipy.stats.nct: of 20 values with standard deviation 1, the t test finds 0.6604 in 80 % of cases.
    for population in (Population.BOTH, Population.PERSONAS):
        assert power(ONLY_PERSONAS, Size(20, 1, 6, 1), population, 0.6604) == pytest.approx(0.8, abs=0.015)


def test_six_personas_show_a_difference_only_if_all_have_its_sign() -> None:
    # p is 2/64 then, and 4/64 else: of normal differences with mean d, all six are positive in Φ(d)⁶.
    expected = (0.5 * math.erfc(-1.5 / math.sqrt(2))) ** 6
    found = power(ONLY_PERSONAS, Size(6, 1, 1, 1), Population.PERSONAS, 1.5)
    assert found == pytest.approx(expected, abs=0.02)


def test_few_personas_are_tested_as_comparisons_test_them() -> None:
    size, draws = Size(9, 3, 2, 5), np.random.default_rng(3)
    noise = NOISE._replace(wordings=0.0, levels=0.05)
    samples = [[cell.figure.value for cell in differences(draws, noise, size, 0.1)] for _ in range(1500)]
    p_values = [sign_flip_p_value(np.array(sample), 0) for sample in samples]
    found = power(noise, size, Population.PERSONAS, 0.1)
    assert found == pytest.approx(np.mean(np.array(p_values) <= 0.05), abs=0.04)


def test_all_sizes_together_take_a_second_of_cpu() -> None:
    began = time.process_time()
    for size in product([0], [3], (1, 3, 6, 12, 2), (1, 2, 5, 10, 20, 7)):
        with_enough_personas(NOISE._replace(levels=0.1), Size(*size), Population.PERSONAS, 0.3, 0.8)
    assert time.process_time() - began < 4, "it took 7 s with all patterns of 4,000 samples"


def test_all_pairs_of_models_are_held_to_tukeys_range() -> None:
    # Tables of the studentized range, many degrees of freedom: 3.314 of 3 means, 4.030 of 6; t is that over √2.
    for models, ranged in ((3, 3.314), (6, 4.030)):
        assert level_of_pairs(models) == pytest.approx(math.erfc(ranged / 2), rel=0.05)
    assert level_of_pairs(2) == 0.05


def test_levels_are_noise_to_the_signs_alone() -> None:
    apart = NOISE._replace(levels=0.2)
    assert power(apart, SIZE, Population.BOTH, 0.08) == power(NOISE, SIZE, Population.BOTH, 0.08)
    with_levels, without = (power(each, SIZE, Population.PERSONAS, 0.08) for each in (apart, NOISE))
    assert isinstance(with_levels, float)
    assert isinstance(without, float)
    assert with_levels < without - 0.2


@pytest.mark.parametrize("larger", [Size(30, 3, 6, 5), Size(15, 3, 12, 5), Size(15, 3, 6, 20)])
def test_more_of_anything_finds_more(larger: Size) -> None:
    found = [power(NOISE, size, Population.BOTH, 0.06) for size in (SIZE, larger)]
    assert found[0] < found[1]  # type: ignore[operator]  # both are shares


def test_the_fewest_personas_are_the_fewest_and_as_many_on_each_level() -> None:
    found = with_enough_personas(NOISE, SIZE, Population.BOTH, 0.08, 0.8)
    assert found is not None
    assert found.personas % 3 == 0
    fewer = power(NOISE, found._replace(personas=found.personas - 3), Population.BOTH, 0.08)
    enough = power(NOISE, found, Population.BOTH, 0.08)
    assert fewer < 0.8 <= enough  # type: ignore[operator]  # both are shares


def test_no_number_of_personas_makes_up_for_few_wordings() -> None:
    assert with_enough_personas(NOISE, SIZE, Population.BOTH, 0.03, 0.8) is None
    assert with_enough_personas(NOISE, SIZE, Population.PERSONAS, 0.03, 0.8) is not None


@pytest.mark.parametrize(
    ("size", "population", "reason"),
    [
        (
            Size(5, 1, 6, 5),
            Population.PERSONAS,
            "too_few_personas: 5 personas cannot give a p-value below 0.062",
        ),
        (Size(4, 1, 6, 5), Population.BOTH, "too_few_personas: 4; the comparison takes 5"),
        (Size(5, 3, 6, 5), Population.BOTH, "too_few_personas: 5; the comparison takes 6"),
        (Size(15, 3, 2, 5), Population.BOTH, "too_few_wordings: other wordings like these take 3"),
    ],
)
def test_what_finds_nothing_says_why(size: Size, population: Population, reason: str) -> None:
    assert str(power(NOISE, size, population, 10.0)).startswith(reason)


@pytest.mark.parametrize("population", [Population.BOTH, Population.PERSONAS])
def test_a_difference_that_never_varies_is_always_found(population: Population) -> None:
    assert power(Noise(0.0, 0.0, 0.0, 0.0), SIZE, population, 0.01) == 1.0
