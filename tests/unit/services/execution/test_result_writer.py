import pytest

from app.services.execution.result_writer import Pace


def rests(rows: int, *, every: float, times: int) -> list[float]:
    """How long is rested after each of several transactions, in milliseconds."""
    pace = Pace()
    return [round(1000 * (pace.begin(rows, time * every) - time * every), 6) for time in range(times)]


class TestPace:
    def test_a_small_jobs_rows_rest_briefly(self) -> None:
        assert rests(200, every=0.2, times=3) == [20, 20, 20]

    def test_a_busy_worker_rests_long_within_a_second_and_no_longer_however_busy(self) -> None:
        assert rests(320, every=0.08, times=14)[-1] == 80  # 4,000 rows a second
        assert rests(2_000, every=0.08, times=14)[-1] == 80

    def test_between_the_two_rests_grow_with_the_rows(self) -> None:
        assert rests(60, every=0.04, times=200)[-1] == pytest.approx(48, rel=0.01)  # 1,500 rows a second

    def test_a_quiet_second_is_enough_to_rest_briefly_again(self) -> None:
        pace = Pace()
        pace.begin(10_000, 100.0)
        assert round(pace.begin(1, 101.0) - 101.0, 6) == 0.02
