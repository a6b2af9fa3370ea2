"""A job that only judges by 1, 2, 4 worker processes: calls a second, and what each process takes for a call.

`python -m benchmarks.scaling`. Everything is on this machine, the provider too: with as many busy processes as cores, more workers
can't make more calls, and CPU time by call says what a machine of their own would give.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import httpx2

from benchmarks import stub_server
from benchmarks.judging import Given, judging_stack, run_job
from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import machine

WARMING_CALLS = 1000
JOB_SECONDS = 280.0


def main() -> None:
    """Runs the benchmark and prints JSON."""
    options = _parser().parse_args()
    report = {
        "machine": machine(),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "calls": options.calls,
        "latency_ms": options.latency_ms,
        "in_flight_each": options.in_flight,
        "by_workers": {workers: _measure(workers, options) for workers in options.workers},
        "load_average_after": [round(load, 2) for load in os.getloadavg()],
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[1, 2, 4], help="numbers of worker processes"
    )
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=256, help="calls at once of each worker")
    parser.add_argument("--latency-ms", type=float, default=200.0, help="the provider's time for one call")
    parser.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser


def _measure(workers: int, options: argparse.Namespace) -> dict[str, Any]:
    with (
        stub_server.running("plain", options.latency_ms) as url,
        judging_stack(
            url, workers=workers, in_flight=options.in_flight, data_dir=options.data_dir
        ) as supervisor,
        httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api,
    ):
        run_job(api, Given(WARMING_CALLS * workers, "warming"), JOB_SECONDS)
        meter = ProcessMeter(supervisor.pids())
        before, started = meter.cpu_seconds(), time.perf_counter()
        run_job(api, Given(options.calls, "measured"), JOB_SECONDS)
        seconds = time.perf_counter() - started
        used = {name: after - before[name] for name, after in meter.cpu_seconds().items()}
    of_workers = sum(cpu for name, cpu in used.items() if name.startswith("worker"))
    by_part = {name: cpu for name, cpu in used.items() if not name.startswith("worker")}
    return {
        "calls_per_second": round(options.calls / seconds),
        "cpu_us_per_call": {
            name: round(cpu / options.calls * 1e6, 1)
            for name, cpu in {"workers": of_workers, **by_part}.items()
        },
        "cores_used": round(sum(used.values()) / seconds, 2),
    }


if __name__ == "__main__":
    main()
