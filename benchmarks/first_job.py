"""The first job after a start beside the next ones: some 2,000 calls each, sent as soon as the service says that it is ready.

Starts the stack twice in the same directory, so that what is measured is a warm start: the database is there already.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import Json, machine, timed
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
}
ENDED = {"completed", "partial", "failed", "cancelled"}
POLL_SECONDS = 0.05


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=3, help="jobs after each start, one after the other")
    parser.add_argument("--starts", type=int, default=3, help="warm starts")
    parser.add_argument("--iterations", type=int, default=5, help="runs of each job under each instruction")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--latency-ms", type=float, default=50.0, help="the provider's time for one call")
    options = parser.parse_args()
    job = JOB | {"iterations": options.iterations}
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(
            host="127.0.0.1",
            port=0,
            data_dir=Path(directory),
            workers=options.workers,
            simulator_args=("--latency-ms", str(options.latency_ms)),
        )
        load = [round(each, 2) for each in os.getloadavg()]
        with Supervisor(config):
            pass
        starts = [_start(config, job, options.jobs) for _ in range(options.starts)]
    print(json.dumps({"machine": machine(), "load_average_before": load, "starts": starts}, indent=2))


def _start(config: StackConfig, job: Json, count: int) -> Json:
    """The seconds until the service is ready, and those of each job from its request to its end."""
    began = time.perf_counter()
    with Supervisor(config) as supervisor, httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api:
        ready = time.perf_counter() - began
        cpu = ProcessMeter(supervisor.pids()).cpu_seconds()
        jobs = [_job(api, job) for _ in range(count)]
    return {
        "ready_seconds": round(ready, 2),
        "cpu_seconds_until_ready": {name: round(used, 2) for name, used in cpu.items()},
        "jobs": jobs,
    }


def _job(api: httpx2.Client, body: Json) -> Json:
    """The seconds of a job until it was accepted, until it had its first call answered, and until its end."""
    sent = time.perf_counter()
    job_id = api.post("/v1/jobs", json=body).raise_for_status().json()["id"]
    accepted = time.perf_counter() - sent
    while (job := timed(api, f"/v1/jobs/{job_id}")[1])["status"] not in ENDED:
        time.sleep(POLL_SECONDS)
    return {
        "status": job["status"],
        "calls": job["usage"]["calls"],
        "accepted": round(accepted, 2),
        "seconds": round(time.perf_counter() - sent, 2),
    }


if __name__ == "__main__":
    main()
