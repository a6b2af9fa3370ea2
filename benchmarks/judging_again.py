"""Judging the texts of the papers' whole study again: 64,800 responses put straight into the tables, then named by another job.

A stack without workers takes the request; with the sentences as they were, then with another segmenter. What is told is the time
until the job is accepted and how far the API's memory rises meanwhile. Three minutes.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import httpx2
import psycopg

from benchmarks.filled_job import FilledJob
from benchmarks.processes import ProcessMeter
from benchmarks.reading import memory, peak_memory, submit
from benchmarks.whole_job import Json, machine
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

ASKED: dict[str, Json] = {
    "as it was": {},
    "a sample of 200": {"sample": {"responses": 200}},
    "split anew": {"versions": {"segmenter": "punkt-en-wide-v1"}},
}


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=0)
        with (
            Supervisor(config) as supervisor,
            httpx2.Client(base_url=supervisor.urls.api, timeout=600) as api,
        ):
            job_id = submit(api, ["big-five"], options.models)
            job = FilledJob(supervisor.urls.database, job_id, iterations=5)
            job.fill_half()
            job.fill_rest()
            url = supervisor.urls.database.replace("postgresql+psycopg", "postgresql")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("UPDATE jobs SET status = 'completed', finished_at = now()")
            meter = ProcessMeter(supervisor.pids())
            figures = {name: _again(api, meter, job_id, dict(fields)) for name, fields in ASKED.items()}
    print(json.dumps({"machine": machine(), **figures}, indent=2))


def _again(api: httpx2.Client, meter: ProcessMeter, job_id: str, fields: Json) -> Json:
    source = {"job": job_id} | {name: fields.pop(name) for name in ("sample",) if name in fields}
    body = {"responses": source, "judges": ["simulated/sim-judge-noisy"]} | fields
    before = memory(meter)
    with peak_memory(meter) as peaks:
        started = time.perf_counter()
        answer = api.post("/v1/jobs", json=body).raise_for_status().json()
        seconds = time.perf_counter() - started
    return {
        "texts": answer["progress"]["generation"]["total"],
        "verdicts": answer["progress"]["judging"]["total"],
        "seconds": round(seconds, 2),
        "api_mib_before": round(before),
        "api_mib_peak": round(max([before, *peaks])),
    }


if __name__ == "__main__":
    main()
