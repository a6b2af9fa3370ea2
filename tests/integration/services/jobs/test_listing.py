"""What jobs are listed by, kept when they end and filled in where an earlier release did not."""

import json

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.domain.jobs.listing import JobFilter
from app.services.jobs.listing import Entry, fill_in, list_jobs
from app.services.jobs.view import view_job
from tests.integration.jobs import TENANT, claimed, execute, new_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model

FORGET = "UPDATE jobs SET models = NULL, tasks = NULL, scores = NULL, score = NULL, usd = NULL, unpriced_calls = NULL"
MODELS = (a_model("simulated/sim-faithful"), a_model("simulated/sim-drifting"))


async def listed(engine: AsyncEngine) -> list[Entry]:
    return await list_jobs(engine, TENANT, JobFilter(), limit=10)


class TestFigures:
    async def test_are_kept_when_a_job_ends_and_are_those_of_its_results(self, engine: AsyncEngine) -> None:
        worker = Worker(engine, Provider())
        job = await new_job(engine, models=MODELS)
        async with worker.deps.writer.running(), worker.deps.leases.running():
            await worker.run_all(job)
            (going,) = await listed(engine)
            assert (going.job.scores, going.job.models) == ([], [model.model for model in MODELS])
            await worker.finalize(job)
        (entry,) = await listed(engine)
        async with engine.connect() as connection:
            stored = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
        wanted = {
            total["model"]: total["metrics"]["acc_atom"]
            for total in stored["totals"]
            if total["by"] == ["model"]
        }
        assert {s.model: (s.value, s.n) for s in entry.job.scores} == {
            model: (figure["value"], figure["n"]) for model, figure in wanted.items()
        }
        cost = (await view_job(engine, TENANT, job.id)).cost
        assert entry.job.cost == going.job.cost == cost
        assert entry.job.cost.model_dump() == stored["cost"]

    async def test_of_earlier_releases_are_filled_in_by_the_sweep(self, engine: AsyncEngine) -> None:
        worker = Worker(engine, Provider())
        job = await new_job(engine, models=MODELS)
        waiting = await new_job(engine)
        async with worker.deps.writer.running(), worker.deps.leases.running():
            await worker.run_all(job)
            await worker.finalize(job)
        before = await listed(engine)
        rows = "SELECT id, models, tasks, scores, score, usd, unpriced_calls FROM jobs ORDER BY id"
        kept = await execute(engine, rows)
        await execute(engine, FORGET)
        assert [entry.job.cost for entry in await listed(engine)] == [entry.job.cost for entry in before]
        await fill_in(engine)
        assert await execute(engine, rows) == kept
        assert await listed(engine) == before
        assert before[0].job.id == waiting.id

    @pytest.mark.parametrize("document", [None, "{"])
    async def test_a_job_without_results_that_can_be_read_has_none_and_is_looked_at_once(
        self, engine: AsyncEngine, document: str | None
    ) -> None:
        job = await new_job(engine)
        async with engine.begin() as connection:
            if document is not None:
                await jobs.store_result(connection, TENANT, job.id, "partial", document)
        await execute(engine, "UPDATE jobs SET status = 'failed', finished_at = now()")
        await fill_in(engine)
        ((scores, score, usd),) = await execute(engine, "SELECT scores, score, usd FROM jobs")
        assert (scores, score, usd) == ([], None, 0)

    async def test_one_that_somebody_holds_waits(self, engine: AsyncEngine) -> None:
        job, free = await new_job(engine), await new_job(engine)
        await execute(engine, FORGET)
        async with engine.begin() as connection:
            await jobs.lock_job(connection, job.id)
            await fill_in(engine)
        found = dict(await execute(engine, "SELECT id, models IS NULL FROM jobs"))
        assert found == {job.id: True, free.id: False}

    async def test_are_gone_while_a_job_is_at_work_again(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        await execute(engine, "UPDATE jobs SET status = 'failed', scores = '[]', usd = 7, score = 1")
        async with engine.begin() as connection:
            await jobs.forget_result(connection, job.id)
        await execute(engine, "UPDATE jobs SET status = 'running'")
        (entry,) = await list_jobs(engine, TENANT, JobFilter(), limit=10, sort="-score")
        assert (entry.key, entry.job.cost.usd, claim.job_id) == (-1, 0, job.id)
        await fill_in(engine)
        assert (await listed(engine))[0].job.scores == []
