"""A whole job on a real stack, measured: wall time, calls a second, CPU and memory by process, polls, rows.

`python -m benchmarks.whole_job` has a job of existing sentences judged, and says first how many times the CPU time of bare aiohttp,
which does the HTTP alone, all processes of the service take, from the POST until the results are stored. Both take turns; ratios are medians.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
import psycopg

from benchmarks import stub_server
from benchmarks.judging import Given
from benchmarks.peers.contest import run_checked
from benchmarks.peers.tools import Parts, Program, service
from benchmarks.processes import ProcessMeter
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

Json = dict[str, Any]

POLL_SECONDS = 0.2
MEMORY_SAMPLE_SECONDS = 1.0
RESULT_READS = 5
WARMING = 2000
"""Calls of the job before the first that counts: what is loaded and connected once belongs to the start."""


def main() -> None:
    """Compares a job that only judges with bare aiohttp."""
    options = _options()
    load = os.getloadavg()
    with (
        stub_server.running("counted", options.latency_ms) as url,
        service(url, options.in_flight, options.data_dir, workers=options.workers) as ours,
    ):
        bare = Program("with_aiohttp.py", url, options.in_flight, ours=True)
        run_checked(ours, Given(min(WARMING, options.calls), "warming"), url)
        jobs, walls, alone = [], [], []
        for repetition in range(options.repetitions):
            given = Given(options.calls, str(repetition), options.sentences)
            alone.append(run_checked(bare, given, url)["program"] / given.calls * 1e6)
            started = time.perf_counter()
            used = run_checked(ours, given, url)
            walls.append(time.perf_counter() - started)
            jobs.append({name: seconds / given.calls * 1e6 for name, seconds in used.items()})
    circumstances = {
        "calls": options.calls,
        "sentences_a_text": options.sentences,
        "in_flight": options.in_flight,
        "calls_per_second": [round(options.calls / wall) for wall in walls],
        "machine": machine(),
        "workers": options.workers,
        "latency_ms": options.latency_ms,
        "load_average_before": [round(each, 2) for each in load],
    }
    _tell(_compared(jobs, alone) | circumstances, options)


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.set_defaults(latency_ms=200.0)
    made.add_argument("--calls", type=int, default=60_000, help="sentences, each judged by one call")
    made.add_argument("--sentences", type=int, default=20, help="sentences of one text")
    made.add_argument(
        "--in-flight", type=int, default=512, help="calls at once of each worker, and of aiohttp"
    )
    made.add_argument("--repetitions", type=int, default=3)
    return made.parse_args()


def _compared(jobs: list[Parts], alone: list[float]) -> Json:
    """Ratios, each of two costs taken one after the other, as the machine's speed changes; and the costs in microseconds."""
    workers = [sum(used for name, used in job.items() if name.startswith("worker")) for job in jobs]
    everything = [sum(job.values()) for job in jobs]
    costs = {"aiohttp": alone, "all": everything, "workers": workers}
    costs |= {name: [job[name] for job in jobs] for name in jobs[0]}
    return {
        "all_processes_to_aiohttp": _ratio(everything, alone),
        "workers_to_aiohttp": _ratio(workers, alone),
        "cpu_us_per_call": {name: [round(cost) for cost in found] for name, found in costs.items()},
    }


def _ratio(costs: list[float], others: list[float]) -> float:
    return round(median(cost / other for cost, other in zip(costs, others, strict=True)), 2)


def run(options: argparse.Namespace, job: Callable[[httpx2.Client], Json]) -> None:
    """Runs a job, prints what was measured and writes it as JSON.

    Args:
        options: Those of :func:`parser`.
        job: Sends what the job needs beforehand, which is not measured, and gives the job's body.
    """
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=options.data_dir) as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(
            host="127.0.0.1",
            port=0,
            data_dir=Path(directory),
            workers=options.workers,
            simulator_args=("--latency-ms", str(options.latency_ms)),
        )
        with Supervisor(config) as supervisor:
            figures = _measure(supervisor, job)
    report = {
        "machine": machine(),
        "workers": options.workers,
        "latency_ms": options.latency_ms,
        **figures,
    }
    _tell(report, options)


def _tell(report: Json, options: argparse.Namespace) -> None:
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def parser(description: str | None) -> argparse.ArgumentParser:
    """What can be set of every job."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--workers", type=int, default=2, help="worker processes")
    made.add_argument("--latency-ms", type=float, default=50.0, help="the provider's time for one call")
    made.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    made.add_argument("--output", type=Path, help="JSON file to write")
    return made


def _measure(supervisor: Supervisor, job_of: Callable[[httpx2.Client], Json]) -> Json:
    meter = ProcessMeter(supervisor.pids())
    with httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api:
        body = job_of(api)
        load_before, cpu_before, started = os.getloadavg(), meter.cpu_seconds(), time.perf_counter()
        job_id = api.post("/v1/jobs", json=body).raise_for_status().json()["id"]
        submitted = time.perf_counter() - started
        job, polls = _follow(api, job_id, meter)
        wall = time.perf_counter() - started
        cpu = {name: used - cpu_before[name] for name, used in meter.cpu_seconds().items()}
        reads = [timed(api, f"/v1/jobs/{job_id}/results")[0] for _ in range(RESULT_READS)]
    calls = job["usage"]["calls"]
    return {
        "load_average_before": [round(load, 2) for load in load_before],
        "status": job["status"],
        "completeness": job["completeness"],
        "calls": calls,
        "calls_by_stage": {stage: parts["succeeded"] for stage, parts in job["progress"].items()},
        "wall_seconds": round(wall, 2),
        "calls_per_second": round(calls / wall),
        "submit_ms": round(submitted * 1000, 1),
        "cpu_seconds": {name: round(used, 2) for name, used in cpu.items()},
        "cpu_us_per_call": {name: round(used / calls * 1e6) for name, used in cpu.items()}
        | {"all": round(sum(cpu.values()) / calls * 1e6)},
        "peak_memory_mib": {name: round(peak) for name, peak in meter.peaks.items()},
        "status_poll_ms": percentiles(polls),
        "results_ms": [round(seconds * 1000, 1) for seconds in reads],
        "database": _database(supervisor.urls.database),
    }


def _follow(api: httpx2.Client, job_id: str, meter: ProcessMeter) -> tuple[Json, list[float]]:
    """The finished job, and the seconds that each of the status polls on the way took."""
    polls: list[float] = []
    sampled = 0.0
    while True:
        seconds, job = timed(api, f"/v1/jobs/{job_id}")
        polls.append(seconds)
        if job["status"] in {"completed", "failed", "cancelled"}:
            return job, polls
        if time.monotonic() - sampled > MEMORY_SAMPLE_SECONDS:
            meter.sample_memory()
            sampled = time.monotonic()
        time.sleep(POLL_SECONDS)


def timed(api: httpx2.Client, path: str) -> tuple[float, Json]:
    """The seconds that a GET took, and its answer."""
    started = time.perf_counter()
    answer = api.get(path).raise_for_status()
    return time.perf_counter() - started, answer.json()


def percentiles(seconds: list[float]) -> Json:
    """Median, 99th percentile and maximum, in milliseconds."""
    cuts = quantiles(seconds, n=100, method="inclusive")
    found = {"p50": cuts[49], "p99": cuts[98], "max": max(seconds)}
    return {"n": len(seconds)} | {name: round(value * 1000, 1) for name, value in found.items()}


def _database(url: str) -> Json:
    """Rows and MiB, indexes included, of each table that has rows."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1)) as connection:
        names = connection.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
        ).fetchall()
        tables = {
            name: {"rows": _count(connection, name), "mib": round(size / 2**20, 1)} for name, size in names
        }
        size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return {
        "mib": round(size[0] / 2**20, 1) if size else None,
        "tables": {name: found for name, found in tables.items() if found["rows"]},
    }


def _count(connection: psycopg.Connection, table: str) -> int:
    query = psycopg.sql.SQL("SELECT count(*) FROM {}").format(psycopg.sql.Identifier(table))
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def machine() -> Json:
    """Where figures were taken."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


if __name__ == "__main__":
    main()
