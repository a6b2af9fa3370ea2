from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.limiter import Bucket, SlidingWindow


class TestBucket:
    def test_it_grants_its_capacity_and_then_says_how_long_to_wait(self) -> None:
        bucket = Bucket(level=3, at=100.0)
        waits = [bucket.take(100.0, per_minute=60, capacity=3) for _ in range(4)]
        # 60 a minute is one a second, and the bucket is exactly empty
        assert waits == [0, 0, 0, pytest.approx(1.0)]

    def test_it_refills_continuously(self) -> None:
        bucket = Bucket(level=0, at=100.0)
        # after half a second at one a second half a permit is missing
        assert bucket.take(100.5, per_minute=60, capacity=3) == pytest.approx(0.5)
        assert bucket.take(101.0, per_minute=60, capacity=3) == 0

    def test_it_never_holds_more_than_its_capacity(self) -> None:
        bucket = Bucket(level=3, at=100.0)
        waits = [bucket.take(9_999.0, per_minute=60, capacity=3) for _ in range(4)]
        assert waits[:3] == [0, 0, 0]
        assert waits[3] > 0

    def test_over_a_minute_it_grants_the_limit_and_the_burst(self) -> None:
        bucket = Bucket(level=10, at=0.0)
        granted = sum(bucket.take(tick / 100, per_minute=300, capacity=10) == 0 for tick in range(6_000))
        # 10 at once, then 300 / 60 a second for 59.99 seconds
        assert granted in {309, 310}


class TestSlidingWindow:
    def test_what_was_taken_comes_back_a_whole_window_later(self) -> None:
        window = SlidingWindow(limit=10, seconds=60)
        window.take(100.0, 6)
        window.take(130.0, 4)
        # 6 of 10 come back at 160, the other 4 at 190
        assert [window.wait(140.0, amount) for amount in (1, 6, 7, 10)] == [20.0, 20.0, 50.0, 50.0]
        assert window.wait(140.0, 11) == inf
        assert (window.wait(160.0, 6), window.remaining) == (0.0, 6)

    def test_what_is_left_falls_and_recovers_as_if_it_came_back_evenly(self) -> None:
        window = SlidingWindow(limit=500, seconds=60)
        window.take(0.0, 1)
        # one of 500 a minute is 120 ms
        assert window.remaining == 499
        assert window.reset == pytest.approx(0.12)
        window.wait(61.0, 1)
        assert (window.remaining, window.reset) == (500, 0.0)

    @given(
        st.lists(st.tuples(st.floats(0, 40), st.integers(1, 8)), min_size=1, max_size=60),
        st.integers(5, 20),
    )
    def test_no_window_holds_more_than_the_limit_wherever_it_begins(
        self, arrivals: list[tuple[float, int]], limit: int
    ) -> None:
        window, now, taken = SlidingWindow(limit=limit, seconds=60), 0.0, list[tuple[float, int]]()
        for gap, amount in arrivals:
            now += gap
            wait = window.wait(now, amount)
            if wait not in {0.0, inf}:
                # It says exactly when the call fits.
                now += wait * (1 + 1e-12)
                assert window.wait(now, amount) == pytest.approx(0, abs=1e-6)
            if window.wait(now, amount) == 0:
                window.take(now, amount)
                taken.append((now, amount))
        for begin, _ in taken:
            assert sum(amount for at, amount in taken if begin <= at < begin + 60) <= limit
        assert all(first[0] <= second[0] for first, second in pairwise(taken))
