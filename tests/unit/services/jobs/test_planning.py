import asyncio
import threading
from collections.abc import Callable

import pytest

from app.services.errors import AbandonedError, BusyError
from app.services.jobs.planning import MOST_WAITING, PlanningPool


async def never() -> bool:
    return False


class Slow:
    """Work that is under way until it may end, and asks meanwhile whether it should."""

    def __init__(self) -> None:
        self.begun = 0
        self.started, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, check: Callable[[], None]) -> str:
        self.begun += 1
        self.started.set()
        try:
            while not self.go.wait(0.01):
                check()
            return "planned"
        finally:
            self.ended.set()


class TestPlanning:
    async def test_sixteen_plans_of_a_tenant_keep_nobody_else_waiting(self) -> None:
        pool, slow = PlanningPool(), Slow()
        many = [asyncio.create_task(pool.run("greedy", "plan", slow, never)) for _ in range(MOST_WAITING)]
        assert await asyncio.to_thread(slow.started.wait, 10)
        assert await pool.run("other", "plan", lambda _: 1) == 1
        assert await pool.run("greedy", "submission", lambda _: 2) == 2
        with pytest.raises(BusyError, match=f"{MOST_WAITING} jobs of this tenant are already being planned"):
            await pool.run("greedy", "plan", slow)
        assert slow.begun == 1, "one at a time"
        slow.go.set()
        assert set(await asyncio.gather(*many)) == {"planned"}
        assert await pool.run("greedy", "plan", lambda _: 3) == 3

    async def test_what_nobody_waits_for_ends(self) -> None:
        pool, slow = PlanningPool(), Slow()

        async def gone() -> bool:
            return slow.begun > 0

        with pytest.raises(AbandonedError):
            await pool.run("a", "plan", slow, gone)
        assert await asyncio.to_thread(slow.ended.wait, 10)
        assert await pool.run("a", "plan", lambda _: 1) == 1

    async def test_what_nobody_waits_for_is_not_begun(self) -> None:
        pool, slow, second = PlanningPool(), Slow(), Slow()
        first = asyncio.create_task(pool.run("a", "plan", slow, never))
        assert await asyncio.to_thread(slow.started.wait, 10)

        async def gone() -> bool:
            return True

        with pytest.raises(AbandonedError):
            await pool.run("a", "plan", second, gone)
        slow.go.set()
        assert await first == "planned"
        assert await pool.run("a", "plan", lambda _: 1) == 1
        assert second.begun == 0

    async def test_an_error_is_told(self) -> None:
        def wrong(_: object) -> int:
            raise ValueError("wrong")

        with pytest.raises(ValueError, match="wrong"):
            await PlanningPool().run("a", "plan", wrong)
