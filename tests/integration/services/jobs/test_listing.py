"""What jobs are listed by, kept when they end."""

import json

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.domain.jobs.listing import JobFilter
from app.services.jobs.listing import Entry, list_jobs
from app.services.jobs.view import view_job
from tests.integration.jobs import TENANT, claimed, execute, new_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model

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

    async def test_are_gone_while_a_job_is_at_work_again(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        await execute(engine, "UPDATE jobs SET status = 'failed', scores = '[]', usd = 7, score = 1")
        async with engine.begin() as connection:
            await jobs.forget_result(connection, job.id)
        await execute(engine, "UPDATE jobs SET status = 'running'")
        (entry,) = await list_jobs(engine, TENANT, JobFilter(), limit=10, sort="-score")
        assert (entry.key, entry.job.cost.usd, claim.job_id) == (-1, 0, job.id)
        assert (await listed(engine))[0].job.scores == []
