"""A long job at next to no latency: nothing grows, nothing is left over.

`SOAK_CALLS` sets how many calls; the promise is about 650,000.
"""

import os
import time
from dataclasses import dataclass, field
from statistics import median

import httpx2
import psutil  # type: ignore[import-untyped] # it comes without types
import psycopg
import pytest
import redis

from embedded.services import StackConfig
from embedded.supervisor import Supervisor
from tests.conftest import scratch_directory
from tests.databases import libpq_url
from tests.e2e.stack import TERMINAL, Json
from tests.faults.trial import report
from tests.observe import eventually

PROMISED_CALLS = 650_000
CALLS = int(os.environ.get("SOAK_CALLS", PROMISED_CALLS))
CALLS_AN_ITERATION = 8_900
WORKERS = 2
SAMPLE_SECONDS = 1.0
REDIS_MIB = 100.0
GROWTH = 1.25
"""Most of a process' memory in the last quarter of the job's calls, as a multiple of that in their second quarter.

What a worker needs for the results, once and after the last call, is no growth; it counts for the peak."""

JOB: Json = {
    "name": "soak",
    "personas": ["big-five"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
    "iterations": max(1, round(CALLS / CALLS_AN_ITERATION)),
}


@dataclass
class Samples:
    """What was looked at once a second."""

    memory: dict[str, list[float]] = field(default_factory=dict)
    ending_mib: dict[str, float] = field(default_factory=dict)
    redis_mib: list[float] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    unacked: list[int] = field(default_factory=list)

    def take(self, pids: dict[str, int], database: psycopg.Connection, client: "redis.Redis") -> None:
        for name, pid in pids.items():
            self.memory.setdefault(name, []).append(_mib(pid))
        self.redis_mib.append(client.info("memory")["used_memory"] / 2**20)
        self.unacked.append(int(client.hlen("unacked")))
        row = database.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'assay%'"
        ).fetchone()
        assert row is not None
        self.connections.append(row[0])

    def take_ending(self, pids: dict[str, int]) -> None:
        """While the results are computed only the peak is of interest."""
        for name, pid in pids.items():
            self.ending_mib[name] = max(_mib(pid), self.ending_mib.get(name, 0.0))

    def peak(self, name: str) -> int:
        return round(max(*self.memory[name], self.ending_mib.get(name, 0.0)))

    def quarter(self, values: list[float] | list[int], n: int) -> float:
        """The most of a quarter of the job, counted from 0."""
        size = max(1, len(values) // 4)
        return max(values[n * size : (n + 1) * size])

    def usual(self, values: list[int], n: int) -> float:
        """The median of a quarter of the job."""
        size = max(1, len(values) // 4)
        return median(values[n * size : (n + 1) * size])

    def growth(self, name: str) -> float:
        return self.quarter(self.memory[name], 3) / self.quarter(self.memory[name], 1)


def _mib(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss / 2**20)


@pytest.mark.long
@pytest.mark.timeout(12 * 3600)
class TestSoak:
    def test_nothing_grows_and_nothing_is_left(self) -> None:
        samples = Samples()
        with scratch_directory() as directory:
            config = StackConfig(host="127.0.0.1", port=0, data_dir=directory / "data", workers=WORKERS)
            with Supervisor(config) as supervisor:
                job = self._run(supervisor, samples)
        calls = job["usage"]["calls"]
        watched = [f"worker{n}" for n in range(1, WORKERS + 1)] + ["api", "sweeper"]
        growth = {name: round(samples.growth(name), 3) for name in watched}
        # A pool opens one more whenever more statements coincide than before; what leaks is there all the time.
        connections = [samples.quarter(samples.connections, 1), samples.usual(samples.connections, 3)]
        report(
            "soak" if CALLS >= PROMISED_CALLS else "soak, reduced",
            seed=0,
            n=calls,
            of=PROMISED_CALLS,
            growth_of_memory=growth,
            peak_mib={name: samples.peak(name) for name in samples.memory},
            redis_peak_mib=round(max(samples.redis_mib), 1),
            most_connections_in_second_and_usual_in_last_quarter=connections,
            unacked_peak=max(samples.unacked),
            unacked_left=0,
        )
        assert max(growth.values()) <= GROWTH
        assert max(samples.redis_mib) < REDIS_MIB
        assert connections[1] <= connections[0]

    @staticmethod
    def _run(supervisor: Supervisor, samples: Samples) -> Json:
        urls = supervisor.urls
        with (
            httpx2.Client(base_url=urls.api, timeout=120) as api,
            psycopg.connect(libpq_url(urls.database), autocommit=True) as database,
            redis.Redis.from_url(urls.redis) as client,
        ):
            job: Json = api.post("/v1/jobs", json=JOB).raise_for_status().json()
            while job["status"] not in TERMINAL:
                if job["status"] == "finalizing":
                    samples.take_ending(supervisor.pids())
                else:
                    samples.take(supervisor.pids(), database, client)
                time.sleep(SAMPLE_SECONDS)
                job = api.get(f"/v1/jobs/{job['id']}").raise_for_status().json()
            assert (job["status"], job["completeness"]) == ("completed", "full")
            assert eventually(lambda: client.hlen("unacked") == 0, 60), "messages that nobody acknowledged"
            assert eventually(lambda: client.llen("assay") == 0, 60), "messages that nobody took"
        return job
