"""A batch whose worker is stopped, or whose provider turns it down as a whole."""

import asyncio
from unittest.mock import AsyncMock

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.ports import BatchRefusedError, FailureKind
from app.services.batches.advance import MOST_SUBMISSIONS, advance_batch
from tests.integration.jobs import execute, scalar
from tests.integration.services.batches.test_batches import ROUNDS, Service, batched_job, service, simulator

__all__ = ["service", "simulator"]


async def test_who_is_stopped_leaves_nothing_running_and_another_goes_on(
    engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await batched_job(service)
    await service.until_submitted()
    asked, ended = asyncio.Event(), asyncio.Event()

    async def slow(*_: object) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr(service.gateway, "has_ended", slow)
        await execute(engine, "UPDATE batches SET due_at = clock_timestamp()")
        batch_id = await scalar(engine, "SELECT id FROM batches")
        advancing = asyncio.create_task(advance_batch(service.deps, batch_id))
        await asyncio.wait_for(asked.wait(), 10)
        advancing.cancel()
        await asyncio.wait([advancing])
        await asyncio.wait_for(ended.wait(), 10)
    await service.dies()
    assert (await service.completed(job)).completeness == "full"
    assert set(service.asked(job).values()) == {1}


async def test_one_that_is_turned_down_as_a_whole_is_tried_a_few_times_before_the_job_stops(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = BatchRefusedError("an odd one", kind=FailureKind.JOB, code="odd")
    asked = AsyncMock(side_effect=refused)
    monkeypatch.setattr(service.gateway, "has_ended", asked)
    job = await batched_job(service)
    for _ in range(ROUNDS):
        await service.step()
        if (found := await service.job(job)).status is not JobStatus.RUNNING:
            break
        await asyncio.sleep(0.01)
    assert found.status_reason == "odd"
    assert asked.await_count == MOST_SUBMISSIONS
