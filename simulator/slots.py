"""A server that computes a few calls at a time and lets the others wait, in the order in which they came."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from simulator.provider_profiles import Server


@dataclass(slots=True, eq=False)
class Turn:
    """One call in a slot, or waiting for one.

    Attributes:
        done: Called when it was computed.
        timer: Ends its time in the slot; None while it waits.
    """

    done: Callable[[], None]
    timer: asyncio.TimerHandle | None = None


class Slots:
    """The slots of one server.

    Args:
        server: How many there are, and how long a call takes.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._waiting: deque[Turn] = deque()
        self._computing = 0

    @property
    def full(self) -> bool:
        """Whether a further call would have to be refused."""
        queue = self._server.queue
        return queue is not None and self._computing >= self._server.slots and len(self._waiting) >= queue

    def enter(self, done: Callable[[], None]) -> Turn:
        """Adds a call; `done` is called when it was computed."""
        turn = Turn(done)
        self._waiting.append(turn)
        self._fill()
        return turn

    def leave(self, turn: Turn) -> None:
        """The client of a call has gone. A server that does not notice computes the call all the same."""
        if not self._server.notices_hang_ups:
            return
        if turn.timer is None:
            self._waiting.remove(turn)
            return
        turn.timer.cancel()
        self._computing -= 1
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._computing < self._server.slots:
            turn = self._waiting.popleft()
            self._computing += 1
            turn.timer = asyncio.get_running_loop().call_later(self._server.seconds, self._end, turn)

    def _end(self, turn: Turn) -> None:
        self._computing -= 1
        self._fill()
        turn.done()
