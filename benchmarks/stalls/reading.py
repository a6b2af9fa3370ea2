"""A big job read from the API: results, reports, exports, figures, pages, comparisons; and its finalization in a worker.

Five models of the papers' study (225 cells, 218,250 verdicts), put into the tables as if workers had made them.
"""

import asyncio
from functools import partial

import httpx2

from app.db.engine import connect
from app.services.job_context import JobContexts
from app.services.results.finalize import finalize_job
from benchmarks.filled_job import FilledJob
from benchmarks.stalls.service import Served, served
from benchmarks.stalls.watch import longest_stall

MODELS = 5


async def measure() -> dict[str, float]:
    """The longest stall by what was done with the job."""
    found = {}
    async with served() as service:
        client, database = service.client, service.database
        job = await _submitted(client)
        path = f"/v1/jobs/{job}"
        filled = FilledJob(database, job, iterations=5)
        filled.fill_half()
        found["reading: nothing"] = await longest_stall(lambda: asyncio.sleep(0.5))
        for name, what in {
            "results in mid-job": "results",
            "a page in mid-job": "responses?limit=500",
        }.items():
            found[f"reading: {name}"] = await _stall(service, f"{path}/{what}")
        filled.fill_rest()
        engine = connect(database)
        found["worker: finalizing"] = await longest_stall(
            lambda: finalize_job(engine, JobContexts(engine), job)
        )
        await engine.dispose()
        for name, what in _ways(job).items():
            found[f"reading: {name}"] = await _stall(service, what)
        comparison = {
            "a": {"job": job, "model": "model 0"},
            "b": {"job": job, "model": "model 1"},
            "pairing": "items",
        }
        found["reading: comparison by items"] = await longest_stall(
            lambda: client.post("/v1/comparisons", json=comparison)
        )
    return found


def _ways(job: str) -> dict[str, str]:
    """What is read of a job that is over, and where."""
    path = f"/v1/jobs/{job}"
    return {
        "results": f"{path}/results",
        "a page of 500 responses": f"{path}/responses?limit=500",
        "a page where judges disagree": f"{path}/responses?limit=500&judges_disagree=true",
        **{
            f"report as {form}": f"{path}/report?format={form}"
            for form in ("json", "html", "csv", "jsonl", "parquet")
        },
        "cells as CSV": f"{path}/report?format=csv&level=cells",
        "cells as Parquet": f"{path}/report?format=parquet&level=cells",
        **{f"figure {name}": f"{path}/figures/{name}" for name in FIGURES},
        "gate": f"{path}/gate?threshold=acc_atom%3E%3D0.5",
        "distances": f"{path}/distances?model=model%200&persona=E-low&task=essay",
        "console: job": f"/jobs/{job}",
        "console: responses": f"/jobs/{job}/responses?out_of_character=true",
    }


FIGURES = (
    "models.svg",
    "models.png",
    "published.svg",
    "heat_map.svg?model=model%200",
    "heat_map.png?model=model%200",
    "cells.svg?model=model%200",
    "cells.png?model=model%200",
)


async def _stall(service: Served, path: str) -> float:
    """The longest one while something is read, the second time: the first one imports what it needs."""
    await service.read(path)
    return await longest_stall(partial(service.read, path))


async def _submitted(client: httpx2.AsyncClient) -> str:
    body = {
        "personas": ["big-five"],
        "tasks": ["questionnaire", "essay", "social_media_post"],
        "models": [{"model": "simulated/sim-drifting", "label": f"model {n}"} for n in range(MODELS)],
        "judges": ["simulated/sim-judge"],
        "instructions": "all",
        "iterations": 5,
        "confirm_calls": 10**6,
    }
    return str((await client.post("/v1/jobs", json=body)).raise_for_status().json()["id"])
