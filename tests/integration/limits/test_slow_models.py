"""How the stages of jobs share a slow model's slots: the real queue before the real limiter, on a virtual clock."""

import asyncio
from collections import Counter

import pytest

from app.domain.jobs.priority import Priority
from app.domain.providers.model import Usage
from app.limits.redis_limiter import RedisRateLimiter
from app.ports import CallOutcome, Observation
from app.services.execution.fair_queue import FairQueue
from tests.integration.limits.test_redis_limiter import Rates, limiters

SECONDS = {"reasoner": 24.0, "judge": 3.0}
FAR_APART = {"reasoner": 60.0, "judge": 1.0}
WARM_UP_SECONDS, WHILE_SECONDS = 80.0, 320.0


class Worker:
    """A worker's calls to one model, and the seconds of slots that each line has had."""

    def __init__(
        self, limiter: RedisRateLimiter, limit: int = 400, durations: dict[str, float] = SECONDS
    ) -> None:
        self.limiter = limiter
        self.queue = FairQueue(limit)
        self.durations = durations
        self.seconds = dict.fromkeys(SECONDS, 0.0)
        self.calls: Counter[str] = Counter()
        self.counts_from = asyncio.get_running_loop().time() + WARM_UP_SECONDS

    async def call(self, name: str, tenant: str = "t") -> None:
        clock = asyncio.get_running_loop().time
        turn = self.queue.turn_at_once(tenant) or await self.queue.turn_in_line(tenant, name, Priority.NORMAL)
        slot = await self.limiter.admit("own", "slow", Usage(1, 1))
        turn.passed(by_time=self.limiter.is_full("own", "slow"))
        took = self.durations[name]
        await asyncio.sleep(took)
        self.limiter.observe("own", "slow", Observation(CallOutcome.ANSWERED, took, Usage(1, 1)))
        slot.release()
        turn.end()
        if clock() >= self.counts_from:
            self.seconds[name] += took
            self.calls[name] += 1

    async def keep_calling(self, name: str, tasks: int, tenant: str = "t") -> None:
        async def repeat() -> None:
            while True:
                await self.call(name, tenant)

        await asyncio.gather(*(repeat() for _ in range(tasks)))


async def for_a_while(*work: asyncio.Task[None], seconds: float = WARM_UP_SECONDS + WHILE_SECONDS) -> None:
    await asyncio.sleep(seconds)
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)


@pytest.mark.parametrize(("workers", "tenants"), [(1, ("t", "t")), (1, ("one", "other")), (2, ("t", "t"))])
async def test_long_and_short_calls_have_equal_shares_of_the_slots(
    redis_url: str, workers: int, tenants: tuple[str, str]
) -> None:
    async with limiters(redis_url, Rates(max_in_flight=4), workers) as made:
        working = [Worker(limiter) for limiter in made]
        await for_a_while(
            *(
                asyncio.create_task(each.keep_calling(name, 40, tenant))
                for each in working
                for name, tenant in zip(SECONDS, tenants, strict=True)
            )
        )
    seconds = {name: sum(each.seconds[name] for each in working) for name in SECONDS}
    total = sum(seconds.values())
    assert total > 0.85 * 4 * WHILE_SECONDS
    assert seconds["judge"] / total == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("limit", "judges"), [(50, 200), (64, 300)])
async def test_tenants_share_by_time_although_short_calls_lower_the_mean(
    redis_url: str, limit: int, judges: int
) -> None:
    async with limiters(redis_url, Rates(max_in_flight=4)) as [limiter]:
        worker = Worker(limiter, limit, FAR_APART)
        await for_a_while(
            asyncio.create_task(worker.keep_calling("reasoner", 200, "one")),
            asyncio.create_task(worker.keep_calling("judge", judges, "other")),
            seconds=900.0,
        )
    total = sum(worker.seconds.values())
    assert worker.seconds["judge"] / total == pytest.approx(0.5, abs=0.1), worker.seconds


async def test_short_calls_do_not_wait_behind_a_crowd_of_long_ones(redis_url: str) -> None:
    async with limiters(redis_url, Rates(max_in_flight=4)) as [limiter]:
        worker = Worker(limiter)
        await for_a_while(
            asyncio.create_task(worker.keep_calling("reasoner", 40)),
            asyncio.create_task(worker.keep_calling("judge", 1)),
        )
    # A slot becomes free every 6 s, and one long call is ahead: 15 s a call, or 26 s if four were ahead.
    assert worker.calls["judge"] >= WHILE_SECONDS / 20.0


async def test_calls_that_wait_for_a_rate_have_similar_numbers(redis_url: str) -> None:
    async with limiters(redis_url, Rates(requests_per_minute=60)) as [limiter]:
        worker = Worker(limiter)
        await for_a_while(*(asyncio.create_task(worker.keep_calling(name, 60)) for name in SECONDS))
    assert worker.calls["reasoner"] > 0.5 * worker.calls["judge"]
