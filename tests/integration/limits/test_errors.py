"""A model whose server answers all its calls with errors, on a real Valkey: one call at a time tries it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from redis.asyncio import Redis

from app.limits.holds import HOLDS_KEY, read_holds
from app.limits.outage import FAILING_IN_A_ROW, Outage
from app.limits.shared_slots import SharedSlots, Slots
from app.ports import CallOutcome, Observation
from app.redis_server import RedisServer

PATIENCE = 60.0
ANSWERED = Observation(CallOutcome.ANSWERED, 0.001)


def failed(call: int) -> Observation:
    return Observation(CallOutcome.FAILED, 0.001, reason="500: Internal Server Error", call=f"call{call}")


@asynccontextmanager
async def processes(url: str, models: Sequence[str]) -> AsyncIterator[tuple[list[SharedSlots], Redis]]:
    """What a process each has of these models of one connection, all of which have answered; and their Redis."""
    async with AsyncExitStack() as stack:
        made = []
        for number, model in enumerate(models):
            redis = await stack.enter_async_context(RedisServer(url).client(5))
            keys = (f"it/{model}", model, "epoch", "outage", HOLDS_KEY)
            made.append(SharedSlots(redis, Slots(*keys, None, f"worker{number}", 120.0, 600.0), Outage()))
            stack.push_async_callback(made[-1].close)
            await ended(made[-1], ANSWERED)
        yield made, redis


async def ended(worker: SharedSlots, *observed: Observation) -> None:
    """Calls that were all in flight together end so."""
    for _ in observed:
        await worker.enter()
    for observation in observed:
        worker.observe(observation)
        worker.release()


async def until(found: Callable[[], Awaitable[object]]) -> None:
    """Waits until there is something."""
    async with asyncio.timeout(PATIENCE):
        while not await found():  # noqa: ASYNC110 - what is waited for is in Redis
            await asyncio.sleep(0.01)


async def fail(worker: SharedSlots, redis: Redis, calls: int = FAILING_IN_A_ROW) -> None:
    """Has as many different calls fail, and waits until Redis knows and nobody has a share any more."""
    for number in range(calls):
        await ended(worker, failed(number))
    await until(lambda: redis.exists("m:errors"))

    async def nobody_has_a_share() -> bool:
        return not await redis.exists("m")

    await until(nobody_has_a_share)


async def test_all_processes_wait_but_for_one_call_until_one_is_answered(redis_url: str) -> None:
    async with processes(redis_url, ["m", "m"]) as ([worker, other], redis):
        await fail(worker, redis)
        owners = [worker, other] * 10
        waiting = {asyncio.create_task(owner.enter()): owner for owner in owners}
        for number in range(2):
            tried, _ = await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            assert len(tried) == 1
            owner = waiting.pop(tried.pop())
            owner.observe(failed(100 + number))
            owner.release()
        tried, _ = await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        owner = waiting.pop(tried.pop())
        owner.observe(ANSWERED)
        owner.release()
        async with asyncio.timeout(PATIENCE):
            for task, owner in waiting.items():
                await task
                owner.release()
        assert not await redis.exists("m:errors")


async def test_people_are_told_why_nothing_goes(redis_url: str) -> None:
    async with processes(redis_url, ["m"]) as ([worker], redis):
        await fail(worker, redis)
        await redis.hset("m:errors", "interval", "8000000")
        await asyncio.wait_for(ended(worker, failed(100)), PATIENCE)
        waiting = asyncio.create_task(worker.enter())
        await until(lambda: read_holds(redis, ["it/m"]))
        hold = (await read_holds(redis, ["it/m"]))["it/m"]
        assert hold.reason == "all calls end in an error: 500: Internal Server Error"
        worker.observe(ANSWERED)
        await asyncio.wait_for(waiting, PATIENCE)
        worker.release()
        assert await read_holds(redis, ["it/m"]) == {}


async def test_other_models_of_the_connection_are_called(redis_url: str) -> None:
    async with processes(redis_url, ["m", "other"]) as ([worker, other], redis):
        await fail(worker, redis)
        for _ in range(20):
            await asyncio.wait_for(ended(other, ANSWERED), PATIENCE)
        assert await redis.exists("m:errors")


async def test_a_call_that_fails_again_and_again_holds_up_nobody(redis_url: str) -> None:
    async with processes(redis_url, ["m"]) as ([worker], redis):
        for _ in range(5 * FAILING_IN_A_ROW):
            await asyncio.wait_for(ended(worker, failed(1), failed(2)), PATIENCE)
        assert not await redis.exists("m:errors")
