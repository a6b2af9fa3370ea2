"""Where the time of a small job goes: ten answers and their sentences, from the client's POST to the job's end.

The service is idle otherwise. Prints each stage's median; the first jobs, which warm everything up, are not counted.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
import psycopg

from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import Json, machine
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 1,
}
"""Ten questions; the simulated model answers with some six sentences each."""

WARM_UPS = 3

_MOMENTS = """
SELECT extract(epoch FROM j.created_at) AS created, extract(epoch FROM s.announced_at) AS announced,
 extract(epoch FROM j.started_at) AS claimed, extract(epoch FROM j.finished_at) AS finished,
 extract(epoch FROM c.first) AS called, extract(epoch FROM c.generated) AS generated,
 extract(epoch FROM c.judging) AS judging, extract(epoch FROM c.judged) AS judged, c.calls
FROM jobs j, LATERAL (SELECT min(announced_at) AS announced_at FROM shards WHERE job_id = j.id) s,
LATERAL (SELECT min(started_at) AS first,
 max(started_at + latency_ms * interval '1 ms') FILTER (WHERE stage = 'generation') AS generated,
 max(started_at) FILTER (WHERE stage = 'judging') AS judging,
 max(started_at + latency_ms * interval '1 ms') FILTER (WHERE stage = 'judging') AS judged, count(*) AS calls
 FROM calls WHERE job_id = j.id) c
WHERE j.id = %s
"""

STAGES = (
    ("POST sent → job in the database", "sent", "created"),
    ("→ POST answered (of what follows, beside it)", "created", "answered"),
    ("job in the database → claimed", "created", "claimed"),
    ("claimed → first call", "claimed", "called"),
    ("first call → last answer", "called", "generated"),
    ("last answer → last sentence sent", "generated", "judging"),
    ("last sentence sent → last verdict", "judging", "judged"),
    ("last verdict → job over", "judged", "finished"),
    ("job over → seen by an event", "finished", "seen"),
    ("POST sent → job over", "sent", "finished"),
    ("POST sent → seen by an event", "sent", "seen"),
)


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20, help="how many, one after the other")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--latency-ms", type=float, default=200.0, help="the provider's time for one call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(
            host="127.0.0.1",
            port=0,
            data_dir=Path(directory),
            workers=options.workers,
            simulator_args=("--latency-ms", str(options.latency_ms)),
        )
        with Supervisor(config) as supervisor:
            figures = _measure(supervisor, options.jobs)
    target = 2 * options.latency_ms + 300
    print(json.dumps({"machine": machine(), "target_ms": target, **figures}, indent=2))


def _measure(supervisor: Supervisor, count: int) -> Json:
    url = supervisor.urls.database.replace("postgresql+psycopg://", "postgresql://", 1)
    meter = ProcessMeter(supervisor.pids())
    load = [round(each, 2) for each in os.getloadavg()]
    found: list[dict[str, Any]] = []
    with httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api, psycopg.connect(url) as connection:
        for _ in range(WARM_UPS):
            _one(api, connection)
        cpu = meter.cpu_seconds()
        for _ in range(count):
            found.append(_one(api, connection))
            time.sleep(0.3)
        used = {name: now - cpu[name] for name, now in meter.cpu_seconds().items()}
    whole = [(moments["finished"] - moments["sent"]) * 1000 for moments in found]
    return {
        "load_average": load,
        "jobs": count,
        "calls_per_job": found[0]["calls"],
        "milliseconds_by_stage": {
            name: round(median((moments[end] - moments[start]) * 1000 for moments in found), 1)
            for name, start, end in STAGES
        },
        "whole_ms": {
            "least": round(min(whole), 1),
            "median": round(median(whole), 1),
            "p90": round(quantiles(whole, n=10)[-1], 1),
        },
        "cpu_ms_per_job": {name: round(seconds / count * 1000, 1) for name, seconds in used.items()},
    }


def _one(api: httpx2.Client, connection: psycopg.Connection) -> dict[str, Any]:
    """The moments of one job, in seconds of the clock that client and database share."""
    sent = time.time()
    job_id = api.post("/v1/jobs", json=JOB).raise_for_status().json()["id"]
    answered = time.time()
    with api.stream("GET", f"/v1/jobs/{job_id}/events") as events:
        for line in events.iter_lines():
            if line.startswith("data:") and '"finished_at":null' not in line:
                break
    seen = time.time()
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        row: Mapping[str, Any] | None = cursor.execute(_MOMENTS, [job_id]).fetchone()
    connection.rollback()
    if row is None:
        raise LookupError(job_id)
    return {name: float(value) for name, value in row.items()} | {
        "sent": sent,
        "answered": answered,
        "seen": seen,
    }


if __name__ == "__main__":
    main()
