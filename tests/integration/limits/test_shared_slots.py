"""One number of calls in flight for everybody, on a real Valkey."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from redis.asyncio import Redis

from app.limits import shared_slots
from app.limits.concurrency import START
from app.limits.outage import FAILING_IN_A_ROW, IN_A_ROW, Outage
from app.limits.shared_slots import SharedSlots, Slots
from app.limits.slots_script import FORGOTTEN_SECONDS, LONGEST_PROBE_SECONDS
from app.ports import CallOutcome, LimiterUnavailableError, Observation, ProviderUnreachableError
from app.redis_server import RedisServer
from embedded.valkey import EmbeddedValkey

PATIENCE = 60.0


@asynccontextmanager
async def processes(
    url: str, limit: int | None, count: int, *, new: bool = False, outage_seconds: float = 600.0
) -> AsyncIterator[list[SharedSlots]]:
    """What as many worker processes have of one limit."""
    async with AsyncExitStack() as stack:
        made = []
        for number in range(count):
            redis = await stack.enter_async_context(RedisServer(url).client(5))
            if not new:
                await redis.set("epoch", 1)
            slots = Slots(
                "it/m", "slots", "epoch", "outage", "holds", limit, f"worker{number}", 120.0, outage_seconds
            )
            made.append(SharedSlots(redis, slots, Outage()))
            stack.push_async_callback(made[-1].close)
        yield made


class Work:
    """Calls that take some time, and how many there ever were at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.done: dict[SharedSlots, int] = {}

    async def call(self, slots: SharedSlots, seconds: float = 0.02, tenant: str | None = None) -> None:
        await slots.enter(tenant)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.now -= 1
            slots.observe(Observation(CallOutcome.ANSWERED, seconds))
            slots.release(tenant)
        self.done[slots] = self.done.get(slots, 0) + 1

    async def keep_calling(
        self, slots: SharedSlots, seconds: float, tasks: int = 20, tenant: str | None = None
    ) -> None:
        end = asyncio.get_running_loop().time() + seconds

        async def repeat() -> None:
            while asyncio.get_running_loop().time() < end:
                await self.call(slots, tenant=tenant)

        await asyncio.gather(*(repeat() for _ in range(tasks)))


async def entered(calls: list[asyncio.Task[None]], number: int) -> None:
    """Waits until so many have a slot, and a while longer for one more."""
    for _ in range(int(PATIENCE / 0.02)):
        if sum(task.done() for task in calls) >= number:
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.3)
    assert sum(task.done() for task in calls) == number


class TestLimit:
    async def test_is_kept_by_several_processes_together_and_shared_evenly(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, 8, 2) as workers:
            await asyncio.gather(*(work.keep_calling(worker, 2.0) for worker in workers))
        assert work.most == 8
        assert min(work.done.values()) > 0.5 * max(work.done.values())

    async def test_is_all_for_one_where_nobody_else_wants_it(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, 8, 2) as [worker, _]:
            await work.keep_calling(worker, 0.5)
        assert work.most == 8

    async def test_goes_round_where_there_are_more_processes_than_slots(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, 1, 3) as workers:
            until = asyncio.get_running_loop().time() + PATIENCE

            async def insist(worker: SharedSlots) -> None:
                while len(work.done) < 3 and asyncio.get_running_loop().time() < until:
                    await work.call(worker)

            await asyncio.gather(*(insist(worker) for worker in workers))
        assert len(work.done) == 3
        assert work.most == 1

    async def test_leaves_a_slot_to_tenants_who_have_none(self, redis_url: str) -> None:
        async with processes(redis_url, 4, 1) as [worker], asyncio.TaskGroup() as group:
            slow = [group.create_task(worker.enter("slow")) for _ in range(20)]
            await entered(slow, 3)
            for _ in range(3):  # one after the other has it, and whoever had none comes first
                await asyncio.wait_for(worker.enter("other"), PATIENCE)
                again = group.create_task(worker.enter("other"))
                await asyncio.sleep(0.3)
                assert not again.done()
                worker.release("other")
                await asyncio.wait_for(again, PATIENCE)
                worker.release("other")
            assert sum(task.done() for task in slow) == 3
            worker.release("slow")
            await entered(slow, 4)
            for task in slow:
                task.cancel()

    async def test_leaves_one_of_all_processes_together_wherever_it_is_wanted(self, redis_url: str) -> None:
        async with processes(redis_url, 4, 2) as workers, asyncio.TaskGroup() as group:
            slow = [group.create_task(worker.enter("slow")) for worker in workers for _ in range(20)]
            await entered(slow, 3)
            for _ in range(2):
                for worker in workers:
                    await asyncio.wait_for(worker.enter("other"), PATIENCE)
                    assert sum(other._in_use for other in workers) == 4
                    worker.release("other")
            assert sum(task.done() for task in slow) == 3
            for task in slow:
                task.cancel()

    async def test_forgets_the_tenants_of_a_process_that_has_stopped(self, redis_url: str) -> None:
        async with processes(redis_url, 4, 2) as [going, stopped], Redis.from_url(redis_url) as redis:
            for worker in (going, stopped):
                await asyncio.wait_for(worker.enter("one"), PATIENCE)
            stopped.release("one")
            await stopped.close()
            assert await redis.hkeys("slots:tenants") == [b"worker0"]
            going.release("one")

    async def test_that_is_found_leaves_one_from_the_start(self, redis_url: str) -> None:
        async with processes(redis_url, None, 2) as workers, asyncio.TaskGroup() as group:
            slow = [group.create_task(worker.enter("slow")) for worker in workers for _ in range(20)]
            await entered(slow, START - 1)
            for worker in workers:
                await asyncio.wait_for(worker.enter("other"), PATIENCE)
                worker.release("other")
            for task in slow:
                task.cancel()

    async def test_is_kept_whoever_of_several_tenants_calls_where(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, 8, 2) as [one, other]:
            callers = [(one, "a"), (one, "b"), (other, "b"), (other, "c")]
            await asyncio.gather(
                *(work.keep_calling(worker, 2.0, tenant=tenant) for worker, tenant in callers)
            )
            assert (one._in_use, other._in_use, one._used, other._used) == (0, 0, {}, {})
        assert work.most == 8
        assert min(work.done.values()) > 0.3 * max(work.done.values())

    @pytest.mark.parametrize(("limit", "tenant"), [(3, "one"), (4, None)])
    async def test_is_used_in_full_where_it_is_small_or_there_is_one_tenant(
        self, redis_url: str, limit: int, tenant: str | None
    ) -> None:
        async with processes(redis_url, limit, 1) as [worker], asyncio.TaskGroup() as group:
            calls = [group.create_task(worker.enter(tenant)) for _ in range(20)]
            await entered(calls, limit)
            for task in calls:
                task.cancel()

    async def test_of_a_process_that_died_comes_back(
        self, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shared_slots, "LASTING_SECONDS", 2.0)
        async with processes(redis_url, 2, 2) as [dead, worker]:
            await dead.enter()
            await dead.enter()
            assert dead._keeper is not None
            dead._keeper.cancel()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(worker.enter(), 0.5)
            await asyncio.wait_for(worker.enter(), PATIENCE)
            worker.release()

    async def test_starts_no_call_on_a_share_that_has_lapsed(
        self, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shared_slots, "LASTING_SECONDS", 1.5)
        async with processes(redis_url, 1, 2) as [frozen, worker]:
            await frozen.enter()
            assert frozen._keeper is not None
            frozen._keeper.cancel()
            await asyncio.sleep(0.6)  # by its own clock the share is over before Redis gives it to others
            frozen.release()
            assert not frozen._free()
            await asyncio.wait_for(worker.enter(), PATIENCE)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(frozen.enter(), 0.5)
            worker.release()


class TestEmptiedRedis:
    async def test_lets_nobody_take_what_others_have(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, 8, 2) as workers, Redis.from_url(redis_url) as redis:
            calling = [asyncio.create_task(work.keep_calling(worker, 4.0)) for worker in workers]
            for _ in range(3):
                await asyncio.sleep(0.7)
                await redis.flushall()
            await asyncio.gather(*calling)
        assert work.most <= 8


class TestWaiting:
    async def test_that_is_given_up_takes_no_slot(self, redis_url: str) -> None:
        async with processes(redis_url, 1, 1) as [worker]:
            await worker.enter()
            waiting = [asyncio.create_task(worker.enter()) for _ in range(5)]
            await asyncio.sleep(0.05)
            for task in waiting[:4]:
                task.cancel()
            worker.release()
            waiting[4].cancel()  # at the moment at which it could have had one
            await asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.wait_for(worker.enter(), PATIENCE)
            worker.release()

    async def test_costs_little(self, redis_url: str) -> None:
        async with processes(redis_url, 4, 1) as [worker], Redis.from_url(redis_url) as redis:
            before = (await redis.info("commandstats")).get("cmdstat_evalsha", {"calls": 0})["calls"]
            started = asyncio.get_running_loop().time()
            await Work().keep_calling(worker, 1.0)
            asked = (await redis.info("commandstats"))["cmdstat_evalsha"]["calls"] - before
            assert asked <= 10 * (asyncio.get_running_loop().time() - started) + 3, (
                "ten times a second at most"
            )


class TestWithoutRedis:
    async def test_nothing_starts_until_it_is_back(
        self, own_valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with processes(own_valkey.url(), 4, 1) as [worker]:
            await worker.enter()
            own_valkey.process.stop()
            attempts = await asyncio.gather(*(worker.enter() for _ in range(20)), return_exceptions=True)
            assert {type(outcome) for outcome in attempts} <= {LimiterUnavailableError, type(None)}
            assert sum(outcome is None for outcome in attempts) <= 3, "what was leased before"
            own_valkey.restart()
            for outcome in attempts:
                if outcome is None:
                    worker.release()
            async with asyncio.timeout(PATIENCE):
                await worker.enter()
            worker.release()
            worker.release()


class TestClose:
    async def test_ends_all_waiting_and_gives_the_share_back(self, redis_url: str) -> None:
        async with processes(redis_url, 1, 2) as [worker, other]:
            await worker.enter()
            waiting = asyncio.create_task(worker.enter())
            await asyncio.sleep(0.05)
            worker.release()
            await worker.close()
            outcomes = await asyncio.gather(waiting, return_exceptions=True)
            assert isinstance(outcomes[0], LimiterUnavailableError) or outcomes[0] is None
            if outcomes[0] is None:
                worker.release()
                await worker.close()
            await asyncio.wait_for(other.enter(), PATIENCE)
            other.release()


def ended(outcome: CallOutcome, seconds: float = 0.001) -> Observation:
    return Observation(outcome, seconds, reason="ConnectionRefusedError: refused")


async def call(worker: SharedSlots, outcome: CallOutcome) -> None:
    await worker.enter()
    worker.observe(ended(outcome))
    worker.release()


class TestLimitThatIsFound:
    async def test_starts_low_and_grows_for_all_processes(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, None, 2) as workers:
            early = asyncio.create_task(work.call(workers[0], 0.01))
            await early
            assert workers[0]._state.limit == START
            await asyncio.gather(*(work.keep_calling(worker, 2.0) for worker in workers))
            assert workers[0]._state.limit == workers[1]._state.limit >= 32
        assert work.most == 40

    async def test_falls_for_all_where_calls_time_out(self, redis_url: str) -> None:
        work = Work()
        async with processes(redis_url, None, 2) as [worker, other]:
            await work.keep_calling(worker, 1.0)
            grown = worker._state.limit
            for _ in range(10 * grown):
                worker.observe(ended(CallOutcome.TIMED_OUT))
            await asyncio.sleep(0.1)
            assert worker._state.limit == grown // 2
            await work.call(other)
            assert other._state.limit == grown // 2


class TestOutage:
    async def test_holds_all_models_of_the_connection_in_all_processes_but_one_probe(
        self, redis_url: str
    ) -> None:
        async with processes(redis_url, None, 2) as [worker, other]:
            for _ in range(IN_A_ROW):
                await call(worker, CallOutcome.UNREACHABLE)
            await asyncio.sleep(0.1)
            waiting = [asyncio.create_task(each.enter()) for each in [worker, other] * 10]
            await asyncio.sleep(0.5)
            assert not any(task.done() for task in waiting)
            await asyncio.sleep(1.0)
            assert [task.done() for task in waiting].count(True) == 1
            probed = worker if any(task.done() for task in waiting[::2]) else other
            probed.observe(ended(CallOutcome.ANSWERED))
            async with asyncio.timeout(PATIENCE):
                for task, owner in zip(waiting, [worker, other] * 10, strict=True):
                    await task
                    owner.release()

    @pytest.mark.parametrize("outcome", [CallOutcome.REJECTED, CallOutcome.RATE_LIMITED])
    async def test_ends_with_any_answer(self, redis_url: str, outcome: CallOutcome) -> None:
        async with processes(redis_url, None, 1) as [worker]:
            for _ in range(IN_A_ROW):
                await call(worker, CallOutcome.UNREACHABLE)
            await asyncio.wait_for(worker.enter(), PATIENCE)
            worker.observe(ended(outcome))
            worker.release()
            async with asyncio.timeout(3 * LONGEST_PROBE_SECONDS):  # as probes they would take longer
                for _ in range(6):
                    await call(worker, CallOutcome.FAILED)

    async def test_is_forgotten_some_time_after_the_last_call_that_waited_for_its_end(
        self, redis_url: str
    ) -> None:
        async with processes(redis_url, None, 1) as [worker], Redis.from_url(redis_url) as redis:
            for _ in range(IN_A_ROW):
                await call(worker, CallOutcome.UNREACHABLE)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(worker.enter(), 0.5)
            assert 0 < await redis.pttl("outage") <= 1000 * FORGOTTEN_SECONDS

    async def test_is_given_up_in_the_time_that_the_operator_set_and_tried_anew(self, redis_url: str) -> None:
        async with (
            processes(redis_url, None, 2, outage_seconds=0.5) as [worker, other],
            Redis.from_url(redis_url) as redis,
        ):
            for _ in range(IN_A_ROW):
                await call(worker, CallOutcome.UNREACHABLE)
            await asyncio.sleep(0.1)
            for each in (worker, other):
                with pytest.raises(ProviderUnreachableError, match="ConnectionRefusedError: refused"):
                    await asyncio.wait_for(each.enter(), PATIENCE)
            assert 0 < await redis.pttl("outage") <= 1000 * FORGOTTEN_SECONDS
            await redis.delete("outage")  # as if that time had passed: keys expire by the server's clock
            await asyncio.wait_for(other.enter(), PATIENCE)
            other.release()

    async def test_is_not_begun_by_a_server_that_has_no_room_for_many(self, redis_url: str) -> None:
        async with processes(redis_url, None, 1) as [worker]:
            await call(worker, CallOutcome.ANSWERED)
            for _ in range(IN_A_ROW):
                worker.observe(ended(CallOutcome.OVERLOADED))
            await asyncio.wait_for(call(worker, CallOutcome.ANSWERED), 1.0)

    async def test_is_not_begun_by_a_model_that_is_overloaded_for_long(self, redis_url: str) -> None:
        async with processes(redis_url, 1, 1) as [worker]:
            for number in range(FAILING_IN_A_ROW):
                await worker.enter()
                worker.observe(ended(CallOutcome.OVERLOADED)._replace(call=f"call{number}"))
                worker.release()
            assert worker.is_failing
            assert not worker._outage.news
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(worker.enter(), 0.5)
