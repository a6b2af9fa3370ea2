from collections.abc import Callable

import pytest

from simulator.provider_profiles import Server
from simulator.slots import Slots


class FakeLoop:
    """A loop whose time only goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[FakeTimer] = []

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: object) -> "FakeTimer":
        self._timers.append(FakeTimer(self.now + delay, callback, arguments))
        return self._timers[-1]

    def run_until(self, end: float) -> None:
        while due := [timer for timer in self._timers if timer.at <= end]:
            first = min(due, key=lambda timer: timer.at)
            self._timers.remove(first)
            self.now = first.at
            if not first.cancelled:
                first.callback(*first.arguments)
        self.now = end


class FakeTimer:
    def __init__(self, at: float, callback: Callable[..., None], arguments: tuple[object, ...]) -> None:
        self.at, self.callback, self.arguments, self.cancelled = at, callback, arguments, False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> FakeLoop:
    fake = FakeLoop()
    monkeypatch.setattr("simulator.slots.asyncio.get_running_loop", lambda: fake)
    return fake


class TestSlots:
    def test_calls_are_computed_so_many_at_a_time_in_their_order(self, loop: FakeLoop) -> None:
        server, done = Slots(Server(slots=2, seconds=2.0)), list[tuple[str, float]]()
        for name in "abcde":
            server.enter(lambda name=name: done.append((name, loop.now)))  # type: ignore[misc]  # mypy cannot type the default of a lambda
        loop.run_until(10)
        assert done == [("a", 2), ("b", 2), ("c", 4), ("d", 4), ("e", 6)]

    def test_a_server_that_notices_gives_a_call_up_whose_client_has_left(self, loop: FakeLoop) -> None:
        server, done = Slots(Server(slots=1, seconds=2.0, notices_hang_ups=True)), list[tuple[str, float]]()
        first, second, _ = (
            server.enter(lambda name=name: done.append((name, loop.now)))  # type: ignore[misc]  # as above
            for name in "abc"
        )
        server.leave(second)
        loop.run_until(1)
        server.leave(first)
        loop.run_until(10)
        # the third has the slot from 1 s on
        assert done == [("c", 3)]

    def test_one_that_does_not_notice_computes_it_all_the_same(self, loop: FakeLoop) -> None:
        server, done = Slots(Server(slots=1, seconds=2.0)), list[tuple[str, float]]()
        turns = [server.enter(lambda name=name: done.append((name, loop.now))) for name in "ab"]  # type: ignore[misc]  # as above
        server.leave(turns[0])
        loop.run_until(10)
        assert done == [("a", 2), ("b", 4)]

    def test_is_full_when_no_more_may_wait(self, loop: FakeLoop) -> None:
        server = Slots(Server(slots=1, queue=1, seconds=2.0))
        found = []
        for _ in range(3):
            found.append(server.full)
            if not server.full:
                server.enter(lambda: None)
        assert found == [False, False, True]
        loop.run_until(2)
        assert not server.full
