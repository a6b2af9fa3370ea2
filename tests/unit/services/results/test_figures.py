"""Figures are drawn one after the other, and nobody waits for long."""

import asyncio
import threading

import pytest

from app.services.errors import BusyError
from app.services.results.figures import FigureDesk


class Pen:
    """Work that is over when somebody says so."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def draw(self) -> bytes:
        self.begun.set()
        assert self.over.wait(30)
        return b"drawn"


async def begun(pen: Pen) -> None:
    assert await asyncio.to_thread(pen.begun.wait, 30)


async def test_who_finds_no_place_is_told_to_come_again() -> None:
    desk, pen = FigureDesk(places=2), Pen()
    first, second = (asyncio.create_task(desk.draw(pen.draw)) for _ in range(2))
    await begun(pen)
    with pytest.raises(BusyError, match="2 figures are waiting"):
        await desk.draw(pen.draw)
    pen.over.set()
    assert [await first, await second] == [b"drawn", b"drawn"]
    assert await desk.draw(pen.draw) == b"drawn"
    desk.close()


async def test_who_does_not_get_a_turn_in_time_is_told_so_and_not_drawn_for() -> None:
    desk, pen, later = FigureDesk(seconds=0.01), Pen(), Pen()
    drawing = asyncio.create_task(desk.draw(pen.draw))
    await begun(pen)
    with pytest.raises(BusyError, match="too many figures"):
        await desk.draw(later.draw)
    pen.over.set()
    assert await drawing == b"drawn"  # it had begun: however long it takes
    assert not later.begun.is_set()
    desk.close()


async def test_who_goes_away_leaves_the_place_to_others() -> None:
    desk, pen, gone = FigureDesk(places=2), Pen(), Pen()
    drawing = asyncio.create_task(desk.draw(pen.draw))
    await begun(pen)
    leaving = asyncio.create_task(desk.draw(gone.draw))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    other = asyncio.create_task(desk.draw(lambda: None))
    pen.over.set()
    assert [await drawing, await other] == [b"drawn", None]
    assert not gone.begun.is_set()
    desk.close()
