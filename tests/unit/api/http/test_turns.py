"""Parties take turns at few places, and none waits without end."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.api.http.answers import Party
from app.api.http.turns import Turns
from app.services.errors import BusyError

ONE, OTHER = Party("one"), Party("other")


class Visit:
    """A request that holds its place until it is told to leave."""

    def __init__(self, turns: Turns, party: Party) -> None:
        self.entered, self._leave = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(turns, party))

    async def _run(self, turns: Turns, party: Party) -> None:
        async with turns.place(party):
            self.entered.set()
            await self._leave.wait()

    async def leave(self) -> None:
        self._leave.set()
        await self.task


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_party_that_waits_goes_before_the_rest_of_another_partys_requests() -> None:
    turns = Turns(1, 1)
    first, second, third = (Visit(turns, ONE) for _ in range(3))
    await first.entered.wait()
    other = Visit(turns, OTHER)
    await settled()
    await first.leave()
    await other.entered.wait()
    assert not second.entered.is_set()
    for visit in (other, second, third):
        await visit.leave()


async def test_a_party_leaves_places_to_others() -> None:
    turns = Turns(2, 1)
    first, second = Visit(turns, ONE), Visit(turns, ONE)
    other = Visit(turns, OTHER)
    await other.entered.wait()
    assert (first.entered.is_set(), second.entered.is_set()) == (True, False)
    for visit in (first, second, other):
        await visit.leave()


async def test_visitors_are_another_party_than_their_tenant() -> None:
    turns = Turns(2, 1)
    visits = [Visit(turns, Party("one", is_visitor)) for is_visitor in (True, True, False)]
    await visits[2].entered.wait()
    assert not visits[1].entered.is_set()
    for visit in visits:
        await visit.leave()


async def test_too_many_of_a_party_are_refused() -> None:
    turns = Turns(1, 1, waiting=1)
    visits = [Visit(turns, ONE) for _ in range(2)]
    await visits[0].entered.wait()
    with pytest.raises(BusyError, match="waiting"):
        async with turns.place(ONE):
            pass
    other = Visit(turns, OTHER)
    for visit in (visits[0], other, visits[1]):
        await visit.leave()


async def test_a_request_without_a_place_in_time_is_refused() -> None:
    turns = Turns(1, 1, seconds=0.01)
    visit = Visit(turns, ONE)
    await visit.entered.wait()
    with pytest.raises(BusyError, match="take all places"):
        async with turns.place(OTHER):
            pass
    await visit.leave()
    async with turns.place(OTHER):
        pass


async def test_a_time_out_of_the_work_itself_is_not_a_busy_service() -> None:
    with pytest.raises(TimeoutError):
        async with Turns(1, 1).place(ONE):
            raise TimeoutError


async def test_a_cancelled_request_leaves_its_place_to_others() -> None:
    turns = Turns(1, 1)
    first, gone = Visit(turns, ONE), Visit(turns, ONE)
    await first.entered.wait()
    await settled()
    gone.task.cancel()
    await settled()
    await first.leave()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(turns.place(OTHER))
