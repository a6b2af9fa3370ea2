"""The limit as the provider sees it: when requests arrived, by the simulator's own ledger."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.integration.limits.test_redis_limiter import SLACK, most_in
from tests.integration.simulator.conftest import RunningSimulator

START_SECONDS = 120.0


class Traffic:
    """Worker processes that share a limit, and the provider that they call."""

    def __init__(self, simulator: RunningSimulator, redis_url: str, per_minute: int, tasks: int) -> None:
        self.simulator = simulator
        self._redis_url = redis_url
        module = "tests.integration.limits.limited_worker"
        self._command = [
            *(sys.executable, "-m", module),
            *(redis_url, simulator.url, str(per_minute), str(tasks)),
        ]
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_worker(self) -> None:
        self.workers.append(subprocess.Popen(self._command))

    def kill_worker(self) -> None:
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def empty_redis(self) -> None:
        with redis.Redis.from_url(self._redis_url) as client:
            client.flushall()

    def received(self) -> int:
        return sum(received for received, _ in self.simulator.counts().values())

    def after_calls(self, calls: int, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while self.received() < calls:
            assert time.monotonic() < deadline, f"fewer than {calls} calls in {seconds:g} s"
            time.sleep(0.05)

    def arrivals(self) -> list[float]:
        moments = [entry["at"] for entry in self.simulator.ledger()]
        assert all(isinstance(moment, float) for moment in moments)
        return sorted(moment for moment in moments if isinstance(moment, float))


@contextmanager
def traffic(
    directory: Path, redis_url: str, *, workers: int, per_minute: int, tasks: int
) -> Iterator[Traffic]:
    simulator = RunningSimulator(directory)
    running = Traffic(simulator, redis_url, per_minute, tasks)
    try:
        for _ in range(workers):
            running.start_worker()
        yield running
    finally:
        while running.workers:
            running.kill_worker()
        simulator.stop()


def disturbed(running: Traffic, calls: int, seconds: float) -> list[float]:
    """When calls arrived, with Redis emptied after a third of them and a worker killed and replaced after two."""
    running.after_calls(calls // 3, seconds)
    running.empty_redis()
    running.after_calls(2 * calls // 3, seconds)
    running.kill_worker()
    running.start_worker()
    running.after_calls(calls, seconds)
    return running.arrivals()


class TestArrivals:
    @pytest.mark.timeout(400)
    def test_exceed_no_window_though_redis_is_emptied_and_a_worker_replaced(
        self, tmp_path: Path, redis_url: str
    ) -> None:
        with traffic(tmp_path, redis_url, workers=3, per_minute=6000, tasks=20) as running:
            arrivals = disturbed(running, 500, START_SECONDS)
        # A busy machine can hold up the simulator itself, which then sees what came meanwhile at once.
        late = 0.5
        for window in (1.0, 2.0, 4.0):
            allowed = (window + SLACK + late) * 6000 / (60 + SLACK) + 1
            assert most_in(window, arrivals) <= allowed, f"in {window} s"

    @pytest.mark.long
    @pytest.mark.timeout(600)
    def test_exceed_no_window_in_100_000_calls_and_leave_little_unused(
        self, tmp_path: Path, redis_url: str
    ) -> None:
        per_minute, calls = 30_000, 100_000
        with traffic(tmp_path, redis_url, workers=4, per_minute=per_minute, tasks=100) as running:
            arrivals = disturbed(running, calls, 400.0)
        in_a_minute, in_a_second = most_in(60.0, arrivals), most_in(1.0, arrivals)
        used = len(arrivals) / ((arrivals[-1] - arrivals[0]) * per_minute / 60)
        print(f"{len(arrivals)} calls, most in 60 s {in_a_minute}, in 1 s {in_a_second}, used {used:.2%}")  # noqa: T201
        assert in_a_minute <= per_minute
        assert in_a_second <= (1.0 + SLACK) * per_minute / 60
        assert used >= 0.98
