"""Reading the results of a job that runs: nobody waits for what is computed for the next reader."""

import asyncio
import json
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.domain.results.contract import Results
from app.services.job_context import JobContexts
from app.services.results import read as module
from app.services.results.compute import compute_results
from app.services.results.read import ResultsReader
from tests.integration.jobs import TENANT, claimed, execute, new_job, whole_run


async def answered(reader: ResultsReader, job: JobRow) -> int:
    document = json.loads(await reader.read(job))
    return sum(cell["generation"]["answered"] for cell in document["cells"])


async def anything_answered(reader: ResultsReader, job: JobRow) -> bool:
    for _ in range(3_000):
        if await answered(reader, job):
            return True
        await asyncio.sleep(0.01)
    return False


class TestResultsOfARunningJob:
    async def test_are_shown_while_newer_ones_are_computed(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        reader = ResultsReader(engine, JobContexts(engine))
        assert await answered(reader, job) == 0
        await ResultWriter(engine).write({(claim.shard_id, claim.token): whole_run(claim, 0)})
        assert await answered(reader, job) == 0  # as they were, at once
        assert await anything_answered(reader, job)
        await reader.close()

    async def test_that_are_old_are_not_shown(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
        monkeypatch.setattr(module, "SHOWN_SECONDS", 0.0)
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        reader = ResultsReader(engine, JobContexts(engine))
        assert await answered(reader, job) == 0
        await ResultWriter(engine).write({(claim.shard_id, claim.token): whole_run(claim, 0)})
        assert await answered(reader, job) == 1

    async def test_are_made_anew_once_it_has_ended_without_stored_ones_or_was_opened_again(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        reader = ResultsReader(engine, JobContexts(engine))
        assert await answered(reader, job) == 0
        await ResultWriter(engine).write({(claim.shard_id, claim.token): whole_run(claim, 0)})
        assert await answered(reader, job) == 0
        assert await answered(reader, replace(job, status=JobStatus.FAILED)) == 1
        await ResultWriter(engine).write({(claim.shard_id, claim.token): whole_run(claim, 1)})
        await execute(
            engine, "UPDATE shards SET retries = retries + 1 WHERE id = :shard", shard=claim.shard_id
        )
        assert await answered(reader, job) == 2


class TestStoredResults:
    async def test_tell_who_the_personas_are(self, engine: AsyncEngine) -> None:
        job = replace(await new_job(engine, personas=("N-low",)), completeness="partial")
        context = await JobContexts(engine).get(TENANT, job.id)
        document = (await compute_results(engine, job, context)).document
        async with engine.begin() as connection:
            await jobs.store_result(connection, TENANT, job.id, "partial", document)
        read = Results.read(await ResultsReader(engine, JobContexts(engine)).read(job))
        assert [dimension.id for dimension in read.dimensions] == ["N"]
        assert [persona.model_dump() for persona in read.personas] == [
            {
                "id": "N-low",
                "description": "neurotic person",
                "traits": [
                    {
                        "dimension": "N",
                        "level": "low",
                        "words": "low in emotional stability (neurotic)",
                    }
                ],
            }
        ]
