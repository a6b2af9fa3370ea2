"""Workers that share a limit, and a server with some slots, on a clock that only the events move."""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from app.limits.concurrency import Latencies, Sample, State, next_state

POLL_SECONDS = 0.1
"""How often a worker looks whether the state has changed."""


@dataclass
class Server:
    """A server with slots and one queue.

    Attributes:
        slots: Calls that it works on at once.
        seconds: What a call takes by itself, and how many tokens its reply has.
        oblivious: Whether it also answers calls whose caller has hung up.
        queue_limit: Longest queue; further calls are refused with 503.
    """

    slots: int
    seconds: Callable[[random.Random], tuple[float, int]] = lambda _: (2.0, 100)
    oblivious: bool = True
    queue_limit: int = 1_000_000


@dataclass
class Outcome:
    """What was seen by second: slot-seconds used for answers that somebody got, and for nobody."""

    useful: dict[int, float] = field(default_factory=dict)
    wasted: dict[int, int] = field(default_factory=dict)
    refused: int = 0
    limits: list[tuple[float, int]] = field(default_factory=list)

    def share_used(self, slots: int, begin: float, end: float) -> float:
        used = sum(seconds for at, seconds in self.useful.items() if begin <= at < end)
        return used / (slots * (end - begin))

    def wasted_after(self, begin: float) -> int:
        return sum(count for at, count in self.wasted.items() if at >= begin)


@dataclass
class _Call:
    started: float
    work: float
    tokens: int
    gone: bool = False
    done: bool = False


class Simulation:
    """Callers without number, one controller."""

    def __init__(
        self,
        server: Server,
        *,
        deadline: float = 120.0,
        demand: int = 512,
        ceiling: int = 100_000,
        seed: int = 0,
    ) -> None:
        self.server, self.deadline, self.demand, self.ceiling = server, deadline, demand, ceiling
        self.random = random.Random(seed)
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.number = 0
        self.state = State()
        self.latencies = Latencies(0.0)
        self.began = 0.0
        self.in_flight = 0
        self.backing_off = 0
        self.busy = 0
        self.queue: deque[_Call] = deque()
        self.outcome = Outcome()

    def run(self, seconds: float) -> Outcome:
        self._poll()
        while self.events and self.events[0][0] <= seconds:
            self.now, _, event = heapq.heappop(self.events)
            event()
        return self.outcome

    def _at(self, seconds: float, event: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, event))

    def _poll(self) -> None:
        self._decide()
        self._at(POLL_SECONDS, self._poll)

    def _decide(self) -> None:
        seen = self.latencies
        sample = Sample(
            self.now - self.began, seen.ended, seen.overloaded, seen.latency, seen.compared, seen.expected
        )
        demand = self.demand - self.backing_off
        after = next_state(self.state, sample, demand=demand, ceiling=self.ceiling, deadline=self.deadline)
        if after != self.state:
            seen.begin(self.now, self.state, after)
            self.state, self.began = after, self.now
            self.outcome.limits.append((round(self.now, 2), after.limit))
        self._start_calls()

    def _start_calls(self) -> None:
        while self.in_flight < min(self.state.limit, self.demand - self.backing_off):
            work, tokens = self.server.seconds(self.random)
            call = _Call(self.now, work, tokens)
            self.in_flight += 1
            if len(self.queue) >= self.server.queue_limit:
                self._at(0.001, partial(self._refuse, call))
                continue
            self.queue.append(call)
            self._at(self.deadline, partial(self._time_out, call))
            self._serve()

    def _serve(self) -> None:
        while self.busy < self.server.slots and self.queue:
            call = self.queue.popleft()
            if call.gone and not self.server.oblivious:
                continue
            self.busy += 1
            self._at(call.work, partial(self._finish, call))

    def _finish(self, call: _Call) -> None:
        self.busy -= 1
        second = int(self.now)
        if call.gone:
            self.outcome.wasted[second] = self.outcome.wasted.get(second, 0) + 1
        else:
            call.done = True
            self.outcome.useful[second] = self.outcome.useful.get(second, 0.0) + call.work
            self.in_flight -= 1
            self.latencies.answered(self.now, self.now - call.started, call.tokens)
            if self.latencies.ended >= self.state.enough:
                self._decide()
        self._serve()
        self._start_calls()

    def _time_out(self, call: _Call) -> None:
        if not call.done:
            call.gone = True
            self.in_flight -= 1
            self.latencies.overload(self.now, self.deadline)
            self._decide()

    def _refuse(self, call: _Call) -> None:
        self.in_flight -= 1
        self.outcome.refused += 1
        self.latencies.overload(self.now, self.now - call.started)
        self.backing_off += 1
        self._at(self.random.uniform(0, 4), self._return)
        self._decide()

    def _return(self) -> None:
        self.backing_off -= 1
        self._start_calls()
