"""What is computed from labels is computed once, and never shown once they are others."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations
from app.domain.labels.annotation import Annotation, Answer, Place
from app.services.results.label_memory import LabelMemory
from tests.integration.jobs import new_job

ENDED = datetime(2026, 11, 23, tzinfo=UTC)


async def annotate(engine: AsyncEngine, job: JobRow, unit: int, score: int) -> None:
    said = Annotation("anna", "E", Place(0, 0, 0, unit), None, Answer.SCORED, score)
    async with engine.begin() as connection:
        await annotations.keep(connection, job.tenant, job.id, [said])


async def finished(engine: AsyncEngine) -> JobRow:
    return replace(await new_job(engine), finished_at=ENDED)


class Counted:
    """Computes a number that nobody had before."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> int:
        self.times += 1
        await asyncio.sleep(0)
        return self.times


class TestLabelMemory:
    async def test_has_nothing_where_nobody_has_annotated(self, engine: AsyncEngine) -> None:
        compute = Counted()
        assert await LabelMemory[int](engine, 2).read([await finished(engine)], compute) is None
        assert compute.times == 0

    async def test_computes_once_for_all_who_ask_until_a_label_is_new_or_another(
        self, engine: AsyncEngine
    ) -> None:
        job, memory, compute = await finished(engine), LabelMemory[int](engine, 2), Counted()
        for n, (unit, score) in enumerate(((0, 3), (1, 3), (1, 4)), start=1):
            await annotate(engine, job, unit, score)
            assert await asyncio.gather(*(memory.read([job], compute) for _ in range(3))) == [n] * 3

    async def test_computes_anew_for_another_wish_and_once_the_job_went_on(self, engine: AsyncEngine) -> None:
        job, memory, compute = await finished(engine), LabelMemory[int](engine, 2), Counted()
        await annotate(engine, job, 0, 3)
        again = replace(job, finished_at=ENDED + timedelta(seconds=1))
        assert [await memory.read([job], compute, wanted=width) for width in (0.1, 0.1, 0.2)] == [1, 1, 2]
        assert [await memory.read([each], compute, wanted=0.2) for each in (job, again, again)] == [2, 3, 3]

    async def test_remembers_nothing_of_a_job_that_runs(self, engine: AsyncEngine) -> None:
        job, memory, compute = await finished(engine), LabelMemory[int](engine, 2), Counted()
        await annotate(engine, job, 0, 3)
        running = replace(job, finished_at=None)
        assert [await memory.read([running], compute) for _ in range(2)] == [1, 2]

    async def test_forgets_the_job_that_nobody_asked_about_for_longest(self, engine: AsyncEngine) -> None:
        memory, compute = LabelMemory[int](engine, 2), Counted()
        one, two, three = [await finished(engine) for _ in range(3)]
        for job in (one, two, three):
            await annotate(engine, job, 0, 3)
        assert [await memory.read([job], compute) for job in (one, two, one, three, one, two)] == [
            1,
            2,
            1,
            3,
            1,
            4,
        ]

    async def test_of_two_jobs_computes_anew_for_a_label_of_either_and_remembers_each_thing_of_them(
        self, engine: AsyncEngine
    ) -> None:
        memory, compute = LabelMemory[int](engine, 3), Counted()
        jobs = [await finished(engine) for _ in range(2)]
        await annotate(engine, jobs[0], 0, 3)
        assert await memory.read(jobs, compute) is None
        await annotate(engine, jobs[1], 0, 3)
        assert [await memory.read(jobs, compute, of=what) for what in "abab"] == [1, 2, 1, 2]
        await annotate(engine, jobs[1], 0, 4)
        assert [await memory.read(jobs, compute, of=what) for what in "abab"] == [3, 4, 3, 4]

    async def test_nobody_waits_for_another_job(self, engine: AsyncEngine) -> None:
        memory, going_on = LabelMemory[int](engine, 2), asyncio.Event()
        one, two = [await finished(engine) for _ in range(2)]
        for job in (one, two):
            await annotate(engine, job, 0, 3)

        async def slow() -> int:
            await going_on.wait()
            return 1

        waiting = asyncio.create_task(memory.read([one], slow))
        try:
            async with asyncio.timeout(30):
                assert await memory.read([two], Counted()) == 1
            assert not waiting.done()
        finally:
            going_on.set()
            assert await waiting == 1
