import numpy as np
import pytest

from app.domain.watching.drift import FEWEST_BEFORE, Change, hazard, limits, newest_change, two_sided

DAILY = hazard(365.25, 1)
FLOOR = 1e-6


def first_alarm(
    values: list[float], chance: float = DAILY, floor: float = FLOOR
) -> tuple[int, Change] | None:
    """After how many runs there is an alarm, and the change."""
    for count in range(1, len(values) + 1):
        found = newest_change(values[:count], chance, floor)
        if found is not None:
            return count, found
    return None


def noise(count: int, seed: int = 0) -> list[float]:
    return list(np.random.default_rng(seed).normal(0.8, 0.01, count))


class TestNewestChange:
    def test_a_lasting_shift_is_found_with_its_place_and_size(self) -> None:
        values = noise(60)
        values[40:] = [value - 0.05 for value in values[40:]]
        found = first_alarm(values)
        assert found is not None
        count, change = found
        assert 42 < count <= 44
        assert abs(change.first - 40) <= 1
        assert change.shift == pytest.approx(-0.05, abs=0.02)

    def test_steady_figures_raise_no_alarm(self) -> None:
        assert first_alarm(noise(200)) is None

    def test_one_odd_run_raises_none_however_odd(self) -> None:
        values = noise(60)
        values[40] = 0.0
        assert first_alarm(values) is None

    def test_the_same_figure_each_time_raises_none_and_one_score_that_differs_neither(self) -> None:
        values = [0.75] * 30 + [0.751] * 30
        assert first_alarm(values, floor=0.002) is None

    def test_a_change_of_frozen_figures_is_found_after_three_runs(self) -> None:
        found = first_alarm([0.75] * 30 + [0.70] * 5, floor=0.002)
        assert found is not None
        assert (found[0], found[1].first, found[1].before) == (33, 30, 0.75)
        assert (found[1].runs_before, found[1].runs_after) == (30, 3)
        assert found[1].after == pytest.approx(0.70)

    def test_rare_steps_of_figures_that_are_mostly_the_same_raise_none(self) -> None:
        """A step in 3 % of runs: of ten years none has an alarm; by the plain spread four would."""
        generator = np.random.default_rng(3)
        years = [0.8 + 0.01 * (generator.random(366) < 0.03) for _ in range(10)]
        assert sum(first_alarm(year.tolist(), floor=0.002) is not None for year in years) == 0

    def test_there_is_none_before_there_is_enough_to_compare_with(self) -> None:
        assert newest_change([0.9] * (FEWEST_BEFORE - 1) + [0.1] * 2, DAILY, FLOOR) is None

    def test_after_a_change_the_runs_before_it_tell_the_spread(self) -> None:
        """Five runs at the new level are too few to be compared with by themselves."""
        values = noise(60)
        later = [value + 0.1 for value in values[40:45]] + [value + 0.05 for value in values[45:52]]
        assert newest_change(later, DAILY, FLOOR) is None
        found = newest_change(later, DAILY, FLOOR, values[:40])
        assert found is not None
        assert (found.first, found.runs_before, found.runs_after) == (5, 5, 7)
        assert newest_change(later, DAILY, FLOOR, values[: FEWEST_BEFORE - 1]) is None

    def test_slow_swings_are_not_taken_for_a_change(self) -> None:
        """Runs with a lag-1 correlation of 0.4: of ten series none raises an alarm; by their plain standard errors it would be two."""
        generator, alarms = np.random.default_rng(1), 0
        for _ in range(10):
            steps = generator.normal(size=250)
            values = [steps[0]]
            for step in steps[1:]:
                values.append(0.4 * values[-1] + float(np.sqrt(1 - 0.16)) * step)
            alarms += first_alarm(values) is not None
        assert alarms == 0


class TestLimits:
    def test_three_runs_in_a_row_beyond_a_limit_raise_an_alarm(self) -> None:
        values = noise(50)
        found = limits([*values, 0.0, 1.0], DAILY, FLOOR)  # those of the runs before the last two
        assert found is not None
        low, high = found
        assert newest_change([*values, *[high * 1.001] * 3], DAILY, FLOOR) is not None
        assert newest_change([*values, *[low * 0.999] * 3], DAILY, FLOOR) is not None
        assert newest_change([*values, *[(low + high) / 2] * 3], DAILY, FLOOR) is None

    def test_there_are_none_for_the_first_runs(self) -> None:
        assert limits([0.5] * (FEWEST_BEFORE + 1), DAILY, FLOOR) is None


class TestHazard:
    def test_a_year_of_runs_sums_to_five_in_a_hundred_whatever_their_number(self) -> None:
        assert hazard(365.25, 2) * 2 * 365.25 <= 0.05
        assert hazard(8766, 2) * 2 * 8766 == pytest.approx(0.05)
        assert hazard(12, 1) == hazard(365.25, 1)

    def test_t_has_the_tails_of_the_tables(self) -> None:
        assert two_sided(10, 0.05) == pytest.approx(2.228, abs=0.001)
