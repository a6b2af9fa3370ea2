"""That the benchmarks run. What they measure is no test's business."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long


def run_benchmark(name: str, *arguments: str, directory: Path = ROOT) -> dict[str, Any]:
    """What a benchmark prints, run in a directory that may have no peers' environment."""
    run = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(run.stdout)
    return report


class TestTransports:
    def test_compares_every_client_that_is_installed(self) -> None:
        tiny = ["--calls", "20", "--in-flight", "4", "--repetitions", "1", "--latency-ms", "1"]
        report = run_benchmark("transports", *tiny, "--scenarios", "tls", "closing")
        for scenario in ("tls", "closing"):
            assert report["cpu_us_per_call"][scenario].keys() >= {"sdk", "lean", "aiohttp"}
            assert report["ratio_to_aiohttp"][scenario]["aiohttp"] == 1


class TestHotPath:
    def test_sets_a_judged_call_beside_bare_aiohttp(self) -> None:
        tiny = ["--calls", "40", "--in-flight", "4", "--repetitions", "1", "--latency-ms", "1"]
        report = run_benchmark("hot_path", *tiny)
        assert report["cpu_us_per_call"].keys() == {"judged", "aiohttp"}
        assert report["ratio_to_aiohttp"] > 0


class TestWholeJob:
    def test_says_first_what_all_processes_take_beside_bare_aiohttp(self) -> None:
        tiny = ["--calls", "300", "--sentences", "3", "--in-flight", "8", "--repetitions", "1"]
        report = run_benchmark("whole_job", *tiny, "--latency-ms", "1")
        assert [*report][:2] == ["all_processes_to_aiohttp", "workers_to_aiohttp"]
        # Otherwise the server was not asked each prompt once, or a process was left out.
        parts = report["cpu_us_per_call"]
        assert parts.keys() >= {
            "aiohttp",
            "all",
            "postgres",
            "valkey",
            "api",
            "sweeper",
            "worker1",
            "worker2",
        }
        assert parts["all"] > parts["workers"] > [0]


class TestPeers:
    def test_sets_the_service_and_a_script_side_by_side_and_says_who_is_not_installed(
        self, tmp_path: Path
    ) -> None:
        tiny = ["--scale", "0.01", "--repetitions", "1", "--in-flight", "8", "--latency-ms", "1"]
        tools = ["--only", "this service", "asyncio script", "Inspect AI"]
        found = run_benchmark("peers", *tiny, *tools, directory=tmp_path)["tools"]
        # So few calls say nothing of the cost; that there is one says that the server was asked each prompt once.
        assert {"cpu_us_per_call", "times_ours"} <= found["this service"].keys()
        assert "worker1" in found["this service"]["by_process"]
        assert "cpu_us_per_call" in found["asyncio script"]
        assert found["Inspect AI"] == {
            "not_measured": "not installed: `make bench-peers` does that",
            "goal": 50,
        }


class TestWrittenRows:
    def test_writes_removes_and_vacuums(self) -> None:
        found = run_benchmark("written_rows", "--calls", "2000", "--writers", "2")["writers_2"]
        assert found["bytes_per_call"].keys() == {"calls", "verdicts"}
        assert found["mib_after_vacuum"] < 0.5  # of 0.9 before


class TestWholeService:
    def test_holds_a_limit(self) -> None:
        found = run_benchmark("rate_limited", "--calls", "300", "--per-second", "100")
        assert found["calls_made"] == 300

    def test_runs_with_some_workers(self) -> None:
        found = run_benchmark("scaling", "--calls", "500", "--workers", "1", "2")
        assert found["by_workers"].keys() == {"1", "2"}

    def test_measures_what_all_share(self) -> None:
        found = run_benchmark("bottlenecks", "--leases", "100", "--messages", "50", "--polls", "50")
        assert found["polls"]["cpu_us"].keys() >= {"api", "postgres"}


class TestStatistics:
    def test_of_the_whole_study_are_computed(self) -> None:
        assert run_benchmark("metrics")["cells"] == 540
