"""Tenants take turns at the places for one kind of work."""

import asyncio
from collections import Counter

from app.services.tenant_turns import TenantTurns, TurnedWork


class Work:
    """Work on items such as ``a1``, of tenant ``a``, that each end when they are released."""

    def __init__(self, places: int) -> None:
        self.begun: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._turned = TurnedWork(TenantTurns(places), self._tenant_of, self._run)

    async def _tenant_of(self, item: str) -> str | None:
        return None if item == "gone" else item[0]

    async def _run(self, item: str) -> None:
        self.begun.append(item)
        await self._gates.setdefault(item, asyncio.Event()).wait()

    async def ask(self, *items: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self._turned(item)) for item in items]
        await settled()
        return tasks

    async def release(self, *items: str) -> None:
        for item in items:
            self._gates.setdefault(item, asyncio.Event()).set()
        await settled()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestTurns:
    async def test_a_tenant_without_work_under_way_starts_at_once_beside_another_s_many(self) -> None:
        work = Work(2)
        await work.ask(*(f"a{number}" for number in range(300)))
        assert work.begun == ["a0", "a1"]
        await work.ask("b0", "b1", "c0", "d0")
        assert work.begun == ["a0", "a1", "b0", "c0"]  # no more than twice the places
        await work.release("a0")
        assert work.begun[4:] == ["d0"]
        await work.release("a1")
        assert work.begun[5:] == ["a2"]
        await work.release("a2", "b0", "c0")
        assert work.begun[6:] == ["a3", "b1"]

    async def test_tenants_alternate_whoever_came_first(self) -> None:
        work = Work(1)
        await work.ask("a0", "a1", "a2", "a3", "b0", "b1", "b2")
        for item in ("a0", "b0", "a1", "b1", "a2", "b2", "a3"):
            await work.release(item)
        assert work.begun == ["a0", "b0", "a1", "b1", "a2", "b2", "a3"]

    async def test_a_tenant_alone_has_all_places(self) -> None:
        work = Work(3)
        await work.ask("a0", "a1", "a2", "a3")
        assert work.begun == ["a0", "a1", "a2"]

    async def test_work_that_is_cancelled_leaves_its_place_to_others(self) -> None:
        work = Work(1)
        running, waiting, _ = await work.ask("a0", "a1", "a2")
        waiting.cancel()
        running.cancel()
        await settled()
        assert work.begun == ["a0", "a2"]


class TestItems:
    async def test_each_is_worked_on_once_at_a_time_and_again_if_named_meanwhile(self) -> None:
        work = Work(1)
        await work.ask("a0", "a1")
        await work.ask("a0", "a1", "a0")
        assert work.begun == ["a0"]
        await work.release("a0", "a1")
        # The state of a0 may have changed since it was read; a1 was not read yet.
        assert Counter(work.begun) == {"a0": 2, "a1": 1}

    async def test_an_item_without_tenant_needs_no_work(self) -> None:
        work = Work(1)
        (task,) = await work.ask("gone")
        await task
        assert work.begun == []
