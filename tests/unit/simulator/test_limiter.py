import pytest

from simulator.limiter import Bucket


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
