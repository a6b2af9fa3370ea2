"""What everybody else notices while many annotations are kept, and while how far people agree is computed from them.

A job is put into the tables of a stack without workers, and annotated in one request, first as JSON, then as CSV; then its
results are read. Meanwhile another client polls another, tiny job. ``alone`` is what the polls take by themselves.
"""

import argparse
import asyncio
import csv
import io
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from app.db.engine import connect
from app.domain.labels.annotation import MOST_ROWS
from app.services.job_context import JobContexts
from app.services.results.finalize import finalize_job
from benchmarks.filled_job import FilledJob
from benchmarks.whole_job import Json, machine, percentiles, timed
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

BODY = {
    "personas": ["E-low"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
    "iterations": 5,
}
POLL_SECONDS = 0.01


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="annotations of a request")
    parser.add_argument("--data-dir", type=Path, help="where the database lies while it runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=options.data_dir) as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=0)
        with (
            Supervisor(config) as supervisor,
            httpx2.Client(base_url=supervisor.urls.api, timeout=600) as api,
        ):
            figures = _measure(api, supervisor.urls.database, options.rows)
    print(json.dumps({"machine": machine(), **figures}, indent=2))


def _measure(api: httpx2.Client, database: str, rows: int) -> Json:
    load = [round(load, 2) for load in os.getloadavg()]
    job_id = str(api.post("/v1/jobs", json=BODY).raise_for_status().json()["id"])
    job = FilledJob(database, job_id, iterations=5)
    job.fill_half()
    job.fill_rest()
    asyncio.run(_finalize(database, job_id))
    tiny = BODY | {"tasks": ["essay"], "instructions": [1], "iterations": 1}
    polled = f"/v1/jobs/{api.post('/v1/jobs', json=tiny).raise_for_status().json()['id']}"
    annotations = _annotations(api, job_id, rows)
    as_json = json.dumps({"annotations": annotations}).encode()
    as_csv = _csv([each | {"score": 3} for each in annotations])

    def post(body: bytes, kind: str) -> Callable[[], object]:
        headers = {"Content-Type": kind}
        return lambda: api.post("/v1/annotations", content=body, headers=headers).raise_for_status()

    return {
        "load_average_before": load,
        "rows": len(annotations),
        "alone": _beside(api, polled, lambda: time.sleep(3)),
        "json": _beside(api, polled, post(as_json, "application/json")),
        "csv": _beside(api, polled, post(as_csv, "text/csv")),
        "results": _beside(api, polled, lambda: timed(api, f"/v1/jobs/{job_id}/results")),
        "results_again": _beside(api, polled, lambda: timed(api, f"/v1/jobs/{job_id}/results")),
    }


async def _finalize(database: str, job_id: str) -> None:
    engine = connect(database)
    await finalize_job(engine, JobContexts(engine), job_id)
    await engine.dispose()


def _annotations(api: httpx2.Client, job_id: str, rows: int) -> list[Json]:
    places: list[Json] = []
    page: Json = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        after = {"after": page["next_cursor"]} if page["next_cursor"] else {}
        page = api.get(f"/v1/jobs/{job_id}/responses", params={"limit": "200", **after}).json()
        places += [
            {"response": each["id"], "unit": unit["index"]} for each in page["data"] for unit in each["units"]
        ]
    people = [f"person {n}" for n in range(1 + rows // len(places))]
    found = [
        {"annotator": name, **place, "score": 1 + n % 5} for name in people for n, place in enumerate(places)
    ]
    return found[:rows]


def _csv(annotations: list[Json]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(annotations[0]))
    writer.writeheader()
    writer.writerows(annotations)
    return text.getvalue().encode()


def _beside(api: httpx2.Client, path: str, act: Callable[[], object]) -> Json:
    """How long something takes, and status polls meanwhile."""
    stop = threading.Event()
    found: list[float] = []

    def poll() -> None:
        with httpx2.Client(base_url=api.base_url, timeout=600) as other:
            while not stop.wait(POLL_SECONDS):
                found.append(timed(other, path)[0])

    poller = threading.Thread(target=poll)
    poller.start()
    time.sleep(0.2)
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    stop.set()
    poller.join()
    return {"seconds": round(seconds, 2), "polls": percentiles(found)}


if __name__ == "__main__":
    main()
