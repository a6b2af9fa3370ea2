"""What a job made is kept as a set, however the job ends: on a real database, with a scripted reasoner."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.db.sets import sets
from app.domain.jobs.status import JobStatus
from app.domain.personagym import diversity as diversity_module
from app.domain.personagym.diversity import Diversity
from app.domain.sets.kinds import PERSONA_SET
from app.services.jobs.control import cancel_job, retry_job
from app.services.jobs.view import show_job
from app.services.sets import freeze as freeze_sets
from tests.integration.jobs import TENANT, execute, scalar, shard_ids
from tests.integration.services.execution.test_generate_personas import (
    PEOPLE,
    Inventor,
    ended,
    kept_sets,
    new_generation,
)
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Worker


@pytest.fixture
def provider() -> Inventor:
    return Inventor()


@pytest.fixture
def inventor(provider: Inventor) -> Inventor:
    return provider


async def cancelled(worker: Worker, job: JobRow) -> tuple[JobRow, dict[str, Any]]:
    """A cancelled job after its end, and its results."""
    await cancel_job(worker.control, TENANT, job.id)
    found = await worker.finalize(job)
    assert found.status is JobStatus.CANCELLED
    async with worker.engine.connect() as connection:
        return found, json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")


async def descriptions(engine: AsyncEngine, set_id: str) -> list[str]:
    async with engine.connect() as connection:
        found = await sets.find_sets(connection, PERSONA_SET, TENANT, [set_id])
    return [persona["description"] for persona in found[set_id].content]


class TestCancelledJob:
    async def test_the_personas_that_were_found_can_be_read(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        def replies(ask: int) -> str:
            if ask == 2:
                raise RuntimeError("the worker breaks down")
            return json.dumps(PEOPLE[:3])

        inventor.replies = replies
        job = await new_generation(engine, 4)
        await worker.run_all(job)
        job, results = await cancelled(worker, job)
        (set_id,) = job.made_sets
        assert await descriptions(engine, set_id) == [*PEOPLE[:3]]
        assert (results["persona_set"]["id"], results["persona_set"]["found"]) == (set_id, 3)
        assert results["persona_set"]["diversity"]["pairs"] == 3

    async def test_one_that_found_none_has_no_set(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_generation(engine, 4)
        await execute(engine, "UPDATE jobs SET started_at = clock_timestamp()")
        job, results = await cancelled(worker, job)
        assert (job.made_sets, results["persona_set"]["id"]) == ([], None)

    async def test_the_questions_that_were_made_can_be_read_though_exemplars_are_missing(
        self, engine: AsyncEngine
    ) -> None:
        def script(path: str, _: str) -> str | None:
            if path.startswith("exemplars"):
                raise RuntimeError("the worker breaks down")
            return None

        worker = Worker(engine, Reasoner(script=script))
        async with worker.deps.writer.running(), worker.deps.leases.running():
            job = await new_gym_job(engine)
            await worker.run((await shard_ids(engine, job.id))[0])
            assert await kept_sets(engine) == set()
            job, results = await cancelled(worker, job)
        (set_id,) = job.made_sets
        assert await kept_sets(engine) == {set_id}
        assert results["manifest"]["personagym"]["question_set"] == set_id


class TestRetriedJob:
    async def test_the_set_of_the_retry_takes_the_place_of_the_earlier_one(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        inventor.replies = lambda _: json.dumps(PEOPLE[:2])
        first, _ = await ended(worker, await new_generation(engine, 4))
        inventor.replies = lambda _: json.dumps(PEOPLE)
        await retry_job(worker.control, TENANT, first.id)
        second, results = await ended(worker, first)
        assert first.made_sets != second.made_sets
        (set_id,) = second.made_sets
        assert await descriptions(engine, set_id) == [*PEOPLE]
        assert results["persona_set"]["id"] == set_id
        assert show_job(second).links["persona_set"] == f"/v1/persona-sets/{set_id}"
        assert await kept_sets(engine) == {set_id}

    async def test_an_earlier_one_stays_as_long_as_a_job_names_it(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        inventor.replies = lambda _: json.dumps(PEOPLE[:2])
        first, _ = await ended(worker, await new_generation(engine, 4))
        await new_gym_job(engine, personas=tuple(first.made_sets))
        inventor.replies = lambda _: json.dumps(PEOPLE)
        await retry_job(worker.control, TENANT, first.id)
        second, _ = await ended(worker, first)
        assert await kept_sets(engine) == {*first.made_sets, *second.made_sets}


class TestMeasuring:
    async def test_holds_no_lock(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop = asyncio.get_running_loop()
        locked = "SELECT count(*) FROM (SELECT FROM {} FOR UPDATE SKIP LOCKED) AS free"

        async def free() -> list[int]:
            return [await scalar(engine, locked.format(table)) for table in ("jobs", "shards")]

        seen: list[list[int]] = []

        def measure(texts: Sequence[str]) -> Diversity | None:
            seen.append(asyncio.run_coroutine_threadsafe(free(), loop).result(60))
            return diversity_module.diversity(texts)

        monkeypatch.setattr(freeze_sets, "diversity", measure)
        _, results = await ended(worker, await new_generation(engine, 4))
        assert seen == [[1, 1]]
        assert results["persona_set"]["diversity"]["pairs"] == 6

    async def test_is_left_to_the_end_of_the_job(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_generation(engine, 4)
        await worker.run_all(job)
        assert await execute(engine, "SELECT FROM persona_sets WHERE diversity IS NULL")
        _, results = await ended(worker, job)
        assert results["persona_set"]["diversity"]["pairs"] == 6
