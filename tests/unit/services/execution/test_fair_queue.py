"""Who goes next, with callers that hold their turns until they are told to end them."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from app.domain.jobs.priority import Priority
from app.services.execution import fair_queue
from app.services.execution.fair_queue import FEWEST_AT_LIMITER, FIRST_CALLS, FairQueue, Turn


async def a_turn(
    queue: FairQueue, job: str = "j", *, tenant: str = "t", priority: Priority = Priority.NORMAL
) -> Turn:
    return queue.turn_at_once(tenant) or await queue.turn_in_line(tenant, job, priority)


@dataclass
class Line:
    """A queue with one place in flight, and who has had it, in order."""

    queue: FairQueue = field(default_factory=lambda: FairQueue(1))
    served: list[str] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def calls(
        self, job: str, number: int, *, tenant: str = "t", priority: Priority = Priority.NORMAL
    ) -> None:
        self.tasks += [asyncio.create_task(self._call(tenant, job, priority)) for _ in range(number)]

    async def _call(self, tenant: str, job: str, priority: Priority) -> None:
        turn = await a_turn(self.queue, job, tenant=tenant, priority=priority)
        turn.passed()
        self.served.append(job)
        await asyncio.sleep(0)
        turn.end()

    async def all(self) -> str:
        await asyncio.gather(*self.tasks)
        return "".join(self.served)


class TestOrder:
    async def test_a_small_job_does_not_wait_behind_a_big_one(self) -> None:
        line = Line()
        line.calls("B", 1000)
        await asyncio.sleep(0)
        line.calls("s", 10)
        order = await line.all()
        assert order.rindex("s") <= 25
        assert len(order) == 1010

    async def test_jobs_of_one_tenant_take_turns(self) -> None:
        line = Line()
        for job in "abc":
            line.calls(job, 30)
        order = await line.all()
        assert all(Counter(order[n : n + 3]).keys() == set("abc") for n in range(3, 87, 3))

    async def test_tenants_share_evenly_however_many_jobs_each_has(self) -> None:
        line = Line()
        for job in "abcd":
            line.calls(job, 100, tenant="many")
        line.calls("x", 100, tenant="one")
        assert 45 <= Counter((await line.all())[:100])["x"] <= 55

    async def test_each_step_of_priority_has_four_times_the_turns(self) -> None:
        line = Line()
        for job, priority in (("l", Priority.LOW), ("n", Priority.NORMAL), ("h", Priority.HIGH)):
            line.calls(job, 400, priority=priority)
        shares = Counter((await line.all())[:210])
        assert shares["h"] == pytest.approx(160, abs=5)
        assert shares["n"] == pytest.approx(40, abs=5)
        assert shares["l"] == pytest.approx(10, abs=5)

    @pytest.mark.parametrize("tenant", ["t", "another"])
    async def test_idleness_saves_up_no_turns(self, tenant: str) -> None:
        line = Line()
        line.calls("a", 200)
        for _ in range(50):
            await asyncio.sleep(0)
        before = len(line.served)
        assert 10 < before < 190
        line.calls("b", 100, tenant=tenant)
        order = (await line.all())[before:]
        assert Counter(order[:20])["b"] == pytest.approx(10, abs=2)

    async def test_who_comes_when_all_others_are_idle_does_not_stand_before_them_later(self) -> None:
        line = Line()
        line.calls("a", 300)
        await line.all()
        line.calls("b", 50)
        line.calls("a", 50)
        assert Counter((await line.all())[300:340])["a"] == pytest.approx(20, abs=2)

    async def test_members_that_are_gone_are_forgotten(self) -> None:
        line = Line()
        for number in range(3 * fair_queue.REMEMBERED):
            line.calls(f"{number}", 2, tenant=f"{number}")
            line.calls(f"{number}", 2)
        await line.all()
        for number in range(3 * fair_queue.REMEMBERED):
            line.calls(f"again {number}", 2)
        await line.all()
        for tenant in "xyz":
            line.calls(f"after them {tenant}", 9, tenant=tenant)
            line.calls(f"after them {tenant}", 9)
            await line.all()
        assert len(line.queue._tenants) <= fair_queue.REMEMBERED
        assert len(line.queue._tenants["t"].lines) <= fair_queue.REMEMBERED


class TestPlaces:
    async def test_there_are_never_more_in_flight_than_allowed(self) -> None:
        queue, most, now = FairQueue(3), 0, 0

        async def call() -> None:
            nonlocal most, now
            turn = await a_turn(queue)
            turn.passed()
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            turn.end()

        await asyncio.gather(*(call() for _ in range(50)))
        assert most == 3

    async def test_a_call_that_was_stopped_leaves_its_place_to_others(self) -> None:
        queue = FairQueue(1)
        first = await a_turn(queue)
        stopped = asyncio.create_task(a_turn(queue))
        waiting = asyncio.create_task(a_turn(queue))
        await asyncio.sleep(0)
        stopped.cancel()
        first.end()
        (await asyncio.wait_for(waiting, 5)).end()
        assert (queue._in_flight, queue._at_limiter, queue._waiting) == (0, 0, 0)

    async def test_a_call_that_is_stopped_with_its_turn_given_passes_it_on(self) -> None:
        queue = FairQueue(1)
        first = await a_turn(queue)
        stopped = asyncio.create_task(a_turn(queue))
        waiting = asyncio.create_task(a_turn(queue))
        await asyncio.sleep(0)
        first.end()  # gives the turn to the one that is stopped before it runs again
        stopped.cancel()
        (await asyncio.wait_for(waiting, 5)).end()
        assert (queue._in_flight, queue._at_limiter, queue._waiting) == (0, 0, 0)


class TestFirstCalls:
    async def test_another_tenant_s_calls_wait_for_none_that_are_in_flight(self) -> None:
        queue = FairQueue(10)
        slow = [await a_turn(queue, tenant="slow") for _ in range(4)]
        for turn in slow:
            turn.passed()
        slow += [await a_turn(queue, tenant="slow") for _ in range(4)]  # these stay at the limiter
        waiting = [asyncio.create_task(a_turn(queue, tenant="slow")) for _ in range(50)]
        await asyncio.sleep(0)
        for _ in range(20):
            (await asyncio.wait_for(a_turn(queue, tenant="other"), 5)).end()
        assert not any(task.done() for task in waiting)
        await stop(waiting)

    async def test_cost_no_later_turns_when_the_other_s_calls_end(self) -> None:
        queue = FairQueue(10)
        slow = []
        for _ in range(10):
            slow.append(await a_turn(queue, tenant="slow"))
            slow[-1].passed()
        tasks = [asyncio.create_task(a_turn(queue, "s", tenant="slow")) for _ in range(50)]
        await asyncio.sleep(0)
        for _ in range(100):
            (await asyncio.wait_for(a_turn(queue, "o", tenant="other"), 5)).end()
        others = [asyncio.create_task(a_turn(queue, "o", tenant="other")) for _ in range(50)]
        await asyncio.sleep(0)
        for turn in slow:
            turn.end()
            await asyncio.sleep(0)
            for task in [*tasks, *others]:
                if task.done():
                    task.result().passed()
            await asyncio.sleep(0)
        assert sum(task.done() for task in others) >= 5
        assert sum(task.done() for task in tasks) >= 4
        await stop([*tasks, *others])

    async def test_they_are_few_of_a_tenant_and_in_all(self) -> None:
        queue = FairQueue(10)
        for _ in range(10):
            (await a_turn(queue, tenant="slow")).passed()
        waiting = []
        for tenant in "abc":
            for _ in range(FIRST_CALLS - 1):
                waiting.append(asyncio.create_task(a_turn(queue, tenant=tenant)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                if waiting[-1].done():
                    waiting[-1].result().passed()
        assert [task.done() for task in waiting] == FIRST_CALLS * [True] + (len(waiting) - FIRST_CALLS) * [
            False
        ]
        await stop(waiting)

    async def test_one_of_a_tenant_at_a_time_waits_at_a_full_limiter(self) -> None:
        queue = FairQueue(100)
        for _ in range(FEWEST_AT_LIMITER):
            await a_turn(queue, tenant="slow")
        waiting = [asyncio.create_task(a_turn(queue, tenant="other")) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, False, False]
        waiting[0].result().passed()
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, True, False]
        await stop(waiting)

    async def test_go_on_while_the_other_s_calls_wait_for_slots_that_other_workers_have(self) -> None:
        queue = FairQueue(100)
        waiting = [asyncio.create_task(a_turn(queue, "big", tenant="slow")) for _ in range(10)]
        await asyncio.sleep(0)
        for _ in range(3):
            turn = await asyncio.wait_for(a_turn(queue, "small", tenant="other"), 5)
            turn.passed(by_time=True)
            turn.end()
        assert sum(task.done() for task in waiting) == FEWEST_AT_LIMITER
        for task in waiting:
            task.cancel()

    async def test_one_goes_on_for_a_tenant_who_has_had_more_time_than_one_whose_calls_take_minutes(
        self,
    ) -> None:
        queue = FairQueue(3)
        first = await a_turn(queue, tenant="other")
        line = asyncio.create_task(queue.turn_in_line("other", "small", Priority.NORMAL))
        await asyncio.sleep(0)
        first.end()
        other = await line
        queue.took(other._tenant, other._line, -1000.0, 0.0, by_time=True)
        other.end()
        waiting = [asyncio.create_task(a_turn(queue, "big", tenant="slow")) for _ in range(10)]
        await asyncio.sleep(0)
        waiting[0].result().passed(by_time=True)
        turn = await asyncio.wait_for(a_turn(queue, "small", tenant="other"), 5)
        turn.end()
        for task in waiting:
            task.cancel()


class TestLimiter:
    async def test_few_calls_wait_at_a_slow_limiter_so_that_the_next_is_still_chosen(self) -> None:
        queue, turns = FairQueue(100), list[Turn]()

        async def call(job: str) -> None:
            turns.append(await a_turn(queue, job))

        big = [asyncio.create_task(call("big")) for _ in range(50)]
        await asyncio.sleep(0)
        assert len(turns) == FEWEST_AT_LIMITER
        small = asyncio.create_task(call("small"))
        await asyncio.sleep(0)
        for number in range(2):
            turns[number].passed()
        await asyncio.sleep(0)
        assert small.done()
        for task in big:
            task.cancel()
        await asyncio.gather(*big, return_exceptions=True)

    async def test_at_a_fast_limiter_a_seconds_worth_may_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 100.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
        queue = FairQueue(1000)
        for _ in range(40):
            turn = await a_turn(queue)
            turn.passed()
            turn.end()
        now = 101.5
        waiting = [asyncio.create_task(a_turn(queue)) for _ in range(60)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(task.done() for task in waiting) == 40
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def stop(waiting: list[asyncio.Task[Turn]]) -> None:
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
