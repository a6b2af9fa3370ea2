import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.services.jobs import follow as module
from app.services.jobs.follow import read_state, states_after
from tests.integration.jobs import TENANT, execute, new_job


class TestAJobThatIsFollowed:
    async def test_shows_another_status_before_it_is_looked_at_as_a_whole_again(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "LOOK_SECONDS", 3600.0)
        job = await new_job(engine)
        first = await read_state(engine, TENANT, job.id)
        states = states_after(engine, TENANT, job.id, first, seen=None)
        assert (await anext(states)) == first
        following = asyncio.ensure_future(anext(states))
        await execute(engine, "UPDATE jobs SET status = 'paused'")
        async with asyncio.timeout(30):
            state = await following
        assert state is not None
        assert state.view.status is JobStatus.PAUSED
