from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import shards
from app.db.execution.result_rows import ResultWriter
from app.services.jobs.view import view_job
from tests.integration.jobs import TENANT, call_row, execute, new_job, shard_ids, take, whole_run

PARTS = ("pending", "running", "succeeded", "failed")


class TestProgress:
    async def test_the_parts_sum_to_the_total_at_every_step(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=80)
        writer = ResultWriter(engine)
        ids = await shard_ids(engine, job.id)
        assert len(ids) > 2

        async def look() -> tuple[int, int, int]:
            view = await view_job(engine, TENANT, job.id)
            for stage in view.progress.values():
                assert stage.total == sum(getattr(stage, part) for part in PARTS)
                assert min(getattr(stage, part) for part in PARTS) >= 0
            generation = view.progress["generation"]
            return generation.succeeded, generation.running, view.usage.calls

        assert await look() == (0, 0, 0)
        done = 0
        for shard_id in ids:
            claim = await take(engine, shard_id)
            assert claim is not None
            await execute(engine, "UPDATE jobs SET status = 'running'")
            runs = claim.run_stop - claim.run_start
            assert await look() == (done, runs, done)
            for run in range(claim.run_start, claim.run_stop):
                rows = [*whole_run(claim, run), call_row(claim)]
                await writer.write({(claim.shard_id, claim.token): rows})
                done += 1
            assert await look() == (done, 0, done)
            async with engine.begin() as connection:
                assert await shards.finish(connection, claim)
            assert await look() == (done, 0, done)
        assert done == 80
        assert (await view_job(engine, TENANT, job.id)).progress["judging"].estimated is False

    async def test_a_shard_given_back_half_done_is_pending_and_what_it_has_counts(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, iterations=2)
        claim = await take(engine, (await shard_ids(engine, job.id))[0])
        assert claim is not None
        await ResultWriter(engine).write({(claim.shard_id, claim.token): whole_run(claim, 0)})
        async with engine.begin() as connection:
            await shards.release(connection, claim, failed=False)
        progress = (await view_job(engine, TENANT, job.id)).progress
        assert [getattr(progress["generation"], part) for part in PARTS] == [1, 0, 1, 0]
        # Two sentences judged; the other response is expected to have as many.
        assert [getattr(progress["judging"], part) for part in PARTS] == [2, 0, 2, 0]
