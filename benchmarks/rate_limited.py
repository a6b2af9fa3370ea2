"""A job that only judges, under a limit of requests a minute: how much longer it takes than the limit alone would have it.

`python -m benchmarks.rate_limited`. The whole service, two workers by default, and a provider (another process, on this
machine) with 200 ms latency and no limit of its own, so that only ours holds back. Calls' times are those of the rows in Postgres.
"""

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from benchmarks import stub_server
from benchmarks.judging import Given, judging_stack, run_job
from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import machine
from embedded.supervisor import Supervisor

PATIENCE = 5
"""How many times as long as the limit has it a job may take."""
WARMING_CALLS = 200


def main() -> None:
    """Runs the benchmark and prints JSON."""
    options = _parser().parse_args()
    limits = {"requests_per_minute": 60 * options.per_second}
    before = os.getloadavg()
    with (
        stub_server.running("plain", options.latency_ms) as url,
        judging_stack(
            url,
            workers=options.workers,
            in_flight=options.in_flight,
            limits=limits,
            data_dir=options.data_dir,
        ) as supervisor,
    ):
        seconds = PATIENCE * options.calls / options.per_second
        _run(supervisor, Given(WARMING_CALLS, "warming"), seconds)
        found = _run(supervisor, Given(options.calls, "measured"), seconds)
    report = {
        "machine": machine(),
        "load_average_before": [round(load, 2) for load in before],
        "load_average_after": [round(load, 2) for load in os.getloadavg()],
        "workers": options.workers,
        "latency_ms": options.latency_ms,
        "calls": options.calls,
        "limit_per_second": options.per_second,
        **_figures(found, options.per_second),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-second", type=float, default=120.0, help="the limit")
    parser.add_argument("--calls", type=int, default=12_000)
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--in-flight", type=int, default=256, help="calls at once of each worker")
    parser.add_argument("--latency-ms", type=float, default=200.0, help="the provider's time for one call")
    parser.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser


def _run(supervisor: Supervisor, given: Given, seconds: float) -> dict[str, Any]:
    """When the job was sent and over, and when each of its calls was sent, in seconds of one clock; and what it took."""
    meter = ProcessMeter(supervisor.pids())
    before = meter.cpu_seconds()
    with httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api:
        sent = time.time()
        job = run_job(api, given, seconds)
    over = time.time()
    after = meter.cpu_seconds()
    url = supervisor.urls.database.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT extract(epoch FROM started_at)::float FROM calls WHERE job_id = %s ORDER BY started_at",
            (job["id"],),
        ).fetchall()
    cpu = {name: round(after[name] - used, 2) for name, used in before.items()}
    return {"sent": sent, "over": over, "calls": [moment for (moment,) in rows], "cpu_seconds": cpu}


def _figures(found: dict[str, Any], per_second: float) -> dict[str, Any]:
    """The wall time against that of the limit, and where the difference lies."""
    calls = found["calls"]
    first, last = calls[0], calls[-1]
    ideal = len(calls) / per_second
    wall = found["over"] - found["sent"]
    whole_seconds = int(last - first)
    by_second = Counter(int(moment - first) for moment in calls)
    counts = [by_second[second] for second in range(whole_seconds)]
    return {
        "calls_made": len(calls),
        "ideal_seconds": round(ideal, 2),
        "wall_seconds": round(wall, 2),
        "wall_more_percent": round(100 * (wall / ideal - 1), 2),
        "first_call_after_seconds": round(first - found["sent"], 2),
        "first_to_last_seconds": round(last - first, 2),
        "share_of_limit_used_percent": round(100 * (len(calls) - 1) / ((last - first) * per_second), 2),
        "last_call_to_end_seconds": round(found["over"] - last, 2),
        "calls_in_a_second": {
            "first": counts[0],
            "least": min(counts),
            "most": max(counts),
            "last": counts[-1],
        },
        "cpu_seconds": found["cpu_seconds"],
    }


if __name__ == "__main__":
    main()
