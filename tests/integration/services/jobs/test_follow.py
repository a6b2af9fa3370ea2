"""Readers follow a job; its process looks at it once for all of them."""

import asyncio
import contextlib
from collections.abc import Mapping

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.domain.jobs.status import JobStatus
from app.services.errors import NotFoundError
from app.services.jobs import follow as module
from app.services.jobs.follow import JobFollower
from tests.integration.jobs import TENANT, execute, new_job


class TestAJobThatIsFollowed:
    async def test_shows_another_status_before_it_is_looked_at_as_a_whole_again(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "LOOK_SECONDS", 3600.0)
        job = await new_job(engine)
        follower = JobFollower(engine)
        first = await follower.read(TENANT, job.id)
        states = follower.states_after(TENANT, job.id, first, seen=None)
        assert (await anext(states)) == first
        following = asyncio.ensure_future(anext(states))
        await execute(engine, "UPDATE jobs SET status = 'paused'")
        async with asyncio.timeout(30):
            state = await following
        assert state is not None
        assert state.view.status is JobStatus.PAUSED
        await states.aclose()

    async def test_is_looked_at_once_for_all_its_readers(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = 0
        find_status = jobs.find_status

        async def counted(engine: AsyncEngine, tenant: str, job_id: str) -> JobStatus | None:
            nonlocal looks
            looks += 1
            return await find_status(engine, tenant, job_id)

        monkeypatch.setattr(jobs, "find_status", counted)
        monkeypatch.setattr(module, "STATUS_SECONDS", 0.01)
        job = await new_job(engine)
        follower = JobFollower(engine)
        told: Mapping[str, list[str]] = {str(number): [] for number in range(50)}
        waiting = asyncio.Semaphore(0)

        async def follow(statuses: list[str]) -> None:
            first = await follower.read(TENANT, job.id)
            async with contextlib.aclosing(follower.states_after(TENANT, job.id, first, None)) as states:
                async for state in states:
                    if state is not None:
                        statuses.append(state.view.status)
                    waiting.release()

        readers = [asyncio.create_task(follow(statuses)) for statuses in told.values()]
        for _ in range(4 * len(readers)):  # the first state, and three looks without a change
            await waiting.acquire()
        before = looks
        await execute(engine, "UPDATE jobs SET status = 'cancelled', finished_at = now()")
        await asyncio.gather(*readers)
        assert list(told.values()) == 50 * [["queued", "cancelled"]]
        assert before < 3 * 110  # at most a hundred in each of the looks, not a hundred for each reader
        assert not follower._watches

    async def test_ends_for_all_readers_when_it_is_deleted(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        follower = JobFollower(engine)
        first = await follower.read(TENANT, job.id)
        readers = [follower.states_after(TENANT, job.id, first, first.tag) for _ in range(2)]
        for states in readers:
            assert await anext(states) is None
        following = [asyncio.ensure_future(anext(states)) for states in readers]
        await execute(engine, "DELETE FROM jobs")
        for ended in following:
            with pytest.raises(NotFoundError):
                await ended

    async def test_is_not_looked_at_without_readers(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        follower = JobFollower(engine)
        first = await follower.read(TENANT, job.id)
        states = follower.states_after(TENANT, job.id, first, None)
        await anext(states)
        following = asyncio.ensure_future(anext(states))
        await asyncio.sleep(0)  # it now waits for the next look
        (watch,) = follower._watches.values()
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        assert watch.task is not None
        with contextlib.suppress(asyncio.CancelledError):
            await watch.task
        assert watch.task.cancelled()
        assert not follower._watches
