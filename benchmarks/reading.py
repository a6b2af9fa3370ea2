"""Reading a big job while it runs and after it, and finalizing it.

The papers' whole study (540 cells, half a million verdicts) is put into the tables of a stack without workers, first half of it and
then all, and read over HTTP: status polls, results, pages of responses, exports. A small job beside it shows what depends
on the size. Some minutes; figures so far go to standard error.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import httpx2

from benchmarks.filled_job import FilledJob
from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import Json, machine, percentiles, timed
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

READERS = ("api", "postgres")
PAGE = 50


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=12, help="models of the big job; the small one has one")
    parser.add_argument("--polls", type=int, default=200, help="status polls in each state")
    parser.add_argument("--data-dir", type=Path, help="where the database lies while it runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=options.data_dir) as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=0)
        with Supervisor(config) as supervisor:
            figures = _measure(supervisor, options.models, options.polls)
    print(json.dumps({"machine": machine(), **figures}, indent=2))


def _measure(supervisor: Supervisor, models: int, polls: int) -> Json:
    meter = ProcessMeter(supervisor.pids())
    figures: Json = {"load_average_before": [round(load, 2) for load in os.getloadavg()]}
    with httpx2.Client(base_url=supervisor.urls.api, timeout=600) as api:
        for name, personas, used in (("small", ["E-low"], 1), ("big", ["big-five"], models)):
            job_id = submit(api, personas, used)
            job = FilledJob(supervisor.urls.database, job_id, iterations=5)
            job.fill_half()
            figures[f"{name}_half"] = _told(_running(api, meter, job_id, polls))
            job.fill_rest()
            figures[f"{name}_finalized"] = _told(_finalized(supervisor.urls.database, meter, job_id))
            figures[f"{name}_ended"] = _told(_ended(api, meter, job_id, polls))
    return figures


def _told(figures: Json) -> Json:
    """Shows what is known so far: the whole takes minutes."""
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return figures


def submit(api: httpx2.Client, personas: list[str], models: int) -> str:
    """A job of the papers' tasks and instructions, of so many models."""
    body = {
        "personas": personas,
        "tasks": ["questionnaire", "essay", "social_media_post"],
        "models": [{"model": "simulated/sim-drifting", "label": f"model {n}"} for n in range(models)],
        "judges": ["simulated/sim-judge"],
        "instructions": "all",
        "iterations": 5,
    }
    return str(api.post("/v1/jobs", json=body).raise_for_status().json()["id"])


def _running(api: httpx2.Client, meter: ProcessMeter, job_id: str, polls: int) -> Json:
    path = f"/v1/jobs/{job_id}"
    return {
        "status": _repeated(lambda: timed(api, path)[0], meter, polls),
        "results": [_one(lambda: timed(api, f"{path}/results")[0], meter) for _ in range(3)],
        "status_while_results_are_read": _beside(api, path),
        "pages": _pages(api, meter, path),
        "console": _console(api, meter, job_id),
    }


def _ended(api: httpx2.Client, meter: ProcessMeter, job_id: str, polls: int) -> Json:
    path = f"/v1/jobs/{job_id}"
    return {
        "status": _repeated(lambda: timed(api, path)[0], meter, polls),
        "results": _repeated(lambda: timed(api, f"{path}/results")[0], meter, 20),
        "pages": _pages(api, meter, path),
        "console": _console(api, meter, job_id),
        "exports": {format_: _export(api, meter, path, format_) for format_ in ("jsonl", "csv", "parquet")},
    }


def _beside(api: httpx2.Client, path: str) -> Json:
    """Status polls while another client reads the results again and again."""
    stop = threading.Event()

    def read() -> None:
        with httpx2.Client(base_url=api.base_url, timeout=600) as other:
            while not stop.is_set():
                other.get(f"{path}/results").raise_for_status()
                stop.wait(1)

    reader = threading.Thread(target=read)
    reader.start()
    found = []
    started = time.perf_counter()
    while time.perf_counter() - started < 15:
        found.append(timed(api, path)[0])
        time.sleep(0.05)
    stop.set()
    reader.join()
    return percentiles(found)


def _pages(api: httpx2.Client, meter: ProcessMeter, path: str) -> Json:
    """Pages of responses at the beginning and far into the job, with and without a filter."""
    far = _cursor_at(api, path, 20 * 500)
    queries = {
        "first": "",
        "far": f"&after={far}" if far else "",
        "out_of_character": "&out_of_character=true",
        "judges_disagree": "&judges_disagree=true",
        "persona": "&persona=E-low",
    }

    def read(query: str) -> Callable[[], float]:
        return lambda: timed(api, f"{path}/responses?limit={PAGE}{query}")[0]

    return {name: _repeated(read(query), meter, 10) for name, query in queries.items()}


def _console(api: httpx2.Client, meter: ProcessMeter, job_id: str) -> Json:
    """The pages that people look at."""
    paths = {
        "jobs": "/",
        "job": f"/jobs/{job_id}",
        "responses": f"/jobs/{job_id}/responses",
        "out_of_character": f"/jobs/{job_id}/responses?out_of_character=true",
        "judges_disagree": f"/jobs/{job_id}/responses?judges_disagree=true",
    }

    def read(path: str) -> Callable[[], float]:
        def look() -> float:
            started = time.perf_counter()
            api.get(path).raise_for_status()
            return time.perf_counter() - started

        return look

    return {name: _repeated(read(path), meter, 10) for name, path in paths.items()}


def _cursor_at(api: httpx2.Client, path: str, responses: int) -> str | None:
    cursor = None
    for _ in range(responses // 500):
        page = api.get(f"{path}/responses?limit=500" + (f"&after={cursor}" if cursor else "")).json()
        if page["next_cursor"] is None:
            return cursor
        cursor = page["next_cursor"]
    return cursor


def _export(api: httpx2.Client, meter: ProcessMeter, path: str, format_: str) -> Json:
    """Rows a second of an export as a client sees it, and how far the API's memory rises meanwhile."""
    before = memory(meter)
    lines = size = 0
    with peak_memory(meter) as peaks:
        cpu, started = _cpu(meter), time.perf_counter()
        with api.stream("GET", f"{path}/report?format={format_}") as answer:
            for chunk in answer.raise_for_status().iter_bytes():
                size += len(chunk)
                lines += chunk.count(b"\n")
        wall = time.perf_counter() - started
        figures = _cost(meter, cpu)
    rows = _rows(api, path)
    return {
        "rows": rows,
        "lines": lines,
        "seconds": round(wall, 2),
        "rows_per_second": round(rows / wall),
        "bytes_per_row": round(size / rows),
        **{f"{name}_us_per_row": round(ms * 1000 / rows, 2) for name, ms in figures.items()},
        "api_mib_before": round(before),
        "api_mib_peak": round(max(peaks, default=before)),
    }


def _rows(api: httpx2.Client, path: str) -> int:
    return int(timed(api, path)[1]["progress"]["judging"]["succeeded"])


def _finalized(url: str, meter: ProcessMeter, job_id: str) -> Json:
    """Finalizes a job in a process of its own, as a worker does it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    cpu, started = _cpu(meter), time.perf_counter()
    process = context.Process(target=_finalize, args=(url, job_id, sender))
    process.start()
    found: Json = receiver.recv()
    process.join()
    return {**found, "with_start_seconds": round(time.perf_counter() - started, 2), **_cost(meter, cpu)}


def _finalize(url: str, job_id: str, sender: Connection) -> None:
    from app.db.engine import connect
    from app.services.job_context import JobContexts
    from app.services.results.finalize import finalize_job

    async def work() -> None:
        engine = connect(url)
        await finalize_job(engine, JobContexts(engine), job_id)
        await engine.dispose()

    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    asyncio.run(work())
    wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    sender.send(
        {
            "wall_seconds": round(wall, 2),
            "cpu_seconds": round(used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, 2),
            "mib_before": round(before.ru_maxrss / 1024),
            "mib_peak": round(used.ru_maxrss / 1024),
        }
    )


def _repeated(act: Callable[[], float], meter: ProcessMeter, times: int) -> Json:
    cpu = _cpu(meter)
    seconds = [act() for _ in range(times)]
    return {
        **percentiles(seconds),
        **{f"{name}_cpu": round(ms / times, 2) for name, ms in _cost(meter, cpu).items()},
    }


def _one(act: Callable[[], float], meter: ProcessMeter) -> Json:
    cpu = _cpu(meter)
    return {"ms": round(act() * 1000, 1), **_cost(meter, cpu)}


def _cpu(meter: ProcessMeter) -> dict[str, float]:
    found = meter.cpu_seconds()
    return {name: found[name] for name in READERS}


def _cost(meter: ProcessMeter, before: dict[str, float]) -> dict[str, float]:
    """CPU milliseconds of the API and of Postgres since then."""
    return {f"{name}_ms": round((used - before[name]) * 1000, 1) for name, used in _cpu(meter).items()}


def memory(meter: ProcessMeter) -> float:
    """What the API uses, in MiB."""
    fresh = ProcessMeter({"api": meter.pids["api"]})
    fresh.sample_memory()
    return fresh.peaks["api"]


@contextmanager
def peak_memory(meter: ProcessMeter) -> Iterator[list[float]]:
    """What the API used, looked at ten times a second."""
    peaks: list[float] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            peaks.append(memory(meter))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    main()
