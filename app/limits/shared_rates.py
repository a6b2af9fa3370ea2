"""How fast the calls to one model may go, over all workers, as one process sees it; see :mod:`app.limits.timeline`."""

import asyncio
import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.domain.providers.model import ProviderLimits, Usage
from app.limits.scripts import LEASE
from app.limits.timeline import (
    NAMED_SECONDS,
    NOTHING,
    RESOURCES,
    SLACK_SECONDS,
    SPAN_SECONDS,
    Cost,
    Intervals,
    Lease,
    Report,
    duration,
    interval,
    per_minute,
    total,
)
from app.ports import CallOutcome, LimiterUnavailableError, Observation
from app.telemetry.metrics import EMPTY_LEASES, LAPSED_SLOTS, count_pause, show_limit
from app.telemetry.vital import start_vital

_TICK = 0.004
"""Seconds between two looks at who may go: those whose moments passed meanwhile go together."""
_FREE_SECONDS = 1.0
"""Seconds for which calls without a rate limit go without asking whether there is a hold."""
_ROUND_TRIPS = 4
"""The shortest of so many round trips is what one to this Redis takes, and makes no moment lapse."""
_UNTOLD_HOLD_SECONDS = 0.05
"""After a 429, or where an allowance is used up, this process waits so long for Redis to say how long all wait."""


class RateLimits(Protocol):
    """The operator's limits of one model; ``None`` for no limit."""

    @property
    def requests_per_minute(self) -> float | None:
        """Calls."""
        ...

    @property
    def tokens_per_minute(self) -> float | None:
        """Input and output tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is limited, and where it is in Redis.

    Attributes:
        connection: The connection's name.
        model: The model's name.
        prefix: First part of all keys.
    """

    connection: str
    model: str
    prefix: str

    @property
    def keys(self) -> list[str]:
        """The keys of :data:`app.limits.scripts.LEASE`."""
        key = f"{self.prefix}:{self.name}"
        return [key, f"{self.prefix}:epoch", f"{key}:sent", f"{self.prefix}:holds"]

    @property
    def name(self) -> str:
        """Of the model, with its connection."""
        return f"{self.connection}/{self.model}"


@dataclass(slots=True, eq=False)
class _Waiter:
    cost: Cost
    passed: asyncio.Future[float] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """When its moment lapses."""


class SharedRates:
    """The calls that wait for their moment, and a task that lets them go; belongs to one event loop.

    Args:
        redis: Where the limits are.
        bucket: What is limited.
        limits: The operator's limits.
    """

    def __init__(self, redis: Redis, bucket: Bucket, limits: RateLimits) -> None:
        self._bucket = bucket
        self._keys = bucket.keys
        self._clock = asyncio.get_running_loop().time
        self._lease = redis.register_script(LEASE)
        self._operators: Intervals = (
            interval(limits.requests_per_minute),
            interval(limits.tokens_per_minute),
            0.0,
            0.0,
        )
        self._intervals = self._operators
        self._show()
        self._named: Intervals | None = None
        self._named_at = 0.0
        self._largest = NOTHING
        self._unleased = [0, 0, 0]
        self._unleased_since = 0.0
        self._beyond = [0, 0]
        self._rejected = 0
        self._limited: tuple[float, float | None] | None = None
        self._limited_at = 0.0
        self._probe_at = math.inf
        self._answered = False
        self._rejection = ""
        """The provider's words of the last 429."""
        self._hold: tuple[float, str, float] | None = None
        """Its end, its reason, and the end by the provider's word."""
        self._free_until = 0.0
        self._held_until = 0.0
        self._round_trips: deque[float] = deque([0.0] * _ROUND_TRIPS, maxlen=_ROUND_TRIPS)
        self._waiting: deque[_Waiter] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def passes_at_once(self, expected: Usage) -> bool:
        """Whether Redis has said within the last second that there is no limit; the call is then counted as sent."""
        now = self._clock()
        if now >= self._free_until:
            return False
        unleased = self._unleased
        if not unleased[0]:
            self._unleased_since = now
        unleased[0] += 1
        unleased[1] += expected[0]
        unleased[2] += expected[1]
        return True

    async def wait(self, expected: Usage) -> None:
        """Waits for the moment at which a call may be sent.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached, or this is closed.
        """
        if self._is_closed:
            raise _unavailable("it was closed")
        cost = self._cost(expected)
        self._largest = Cost(*(max(pair) for pair in zip(self._largest, cost, strict=True)))
        waiter = _Waiter(cost)
        self._waiting.append(waiter)
        while True:
            if self._pump is None:
                self._pump = start_vital("rate limiter", self._let_go(), may_return=True)
            lapses = await waiter.passed
            if self._clock() <= lapses:
                return
            LAPSED_SLOTS.inc()
            # The loop was so busy that the moment has lapsed meanwhile: sent now, the call would be one of a burst.
            waiter = _Waiter(cost)
            self._waiting.appendleft(waiter)

    def observe(self, observation: Observation) -> None:
        """Takes in what the end of a call tells of the limits."""
        outcome = observation.outcome
        if observation.beyond is not None:
            self._beyond[0] += observation.beyond[0]
            self._beyond[1] += observation.beyond[1]
        if observation.limits is not None:
            self._take_limits(observation.limits, observation.retry_after)
        if outcome is CallOutcome.RATE_LIMITED:
            self._take_rejection(observation)
        elif self._probe_at < math.inf and self._is_of_probe(observation):
            self._probe_at = math.inf
            self._answered = True
            self._tell()

    async def close(self) -> None:
        """Ends all waiting. Nothing is asked of Redis afterwards, whose client may be closed next."""
        self._is_closed = True
        tasks = [*self._telling, *([self._pump] if self._pump else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._pump = None
        self._fail(None)  # a task that is cancelled before its first step does not clean up

    def _is_of_probe(self, observation: Observation) -> bool:
        """Whether a call that the provider took is the one that was sent after a 429."""
        sent_at = self._clock() - observation.latency_seconds
        return observation.outcome is not CallOutcome.UNREACHABLE and sent_at >= self._probe_at - _TICK

    def _cost(self, expected: Usage) -> Cost:
        """What a call takes; tokens that earlier calls left of what was expected of them are not taken again."""
        taken, beyond = [float(expected.input_tokens), float(expected.output_tokens)], self._beyond
        for k in range(2):
            if beyond[k] < 0:
                left = min(taken[k], -beyond[k])
                taken[k] -= left
                beyond[k] += int(left)
        return Cost(1.0, taken[0] + taken[1], taken[0], taken[1])

    def _take_limits(self, limits: ProviderLimits, retry_after: float | None) -> None:
        named = (
            interval(limits.requests_per_minute),
            interval(limits.tokens_per_minute),
            interval(limits.input_tokens_per_minute),
            interval(limits.output_tokens_per_minute),
        )
        if any(named):
            self._named, self._named_at = named, self._clock()
            self._free_until = 0.0
        if limits.hold_seconds:
            seconds = limits.hold_seconds if retry_after is None else retry_after
            ends = max(seconds, limits.hold_ends_seconds)
            self._hold = (self._clock() + seconds, limits.hold_reason or "", self._clock() + ends)
            # No longer: had Redis not heard of it, nobody would tell it before the hold's end.
            self._held_until = max(self._held_until, self._clock() + _UNTOLD_HOLD_SECONDS)
            self._free_until = 0.0
            self._tell()

    def _take_rejection(self, observation: Observation) -> None:
        """Notes a 429. Those of calls that were already on the wire when the first one came say nothing more."""
        now = self._clock()
        self._rejected += 1
        sent_at = now - observation.latency_seconds
        if sent_at >= self._probe_at - _TICK:
            self._probe_at = math.inf
        if sent_at < self._limited_at:
            return
        count_pause(self._bucket.connection, self._bucket.model)
        self._limited_at = now
        self._limited = (sent_at, observation.retry_after)
        self._rejection = observation.reason
        self._held_until = max(self._held_until, now + _UNTOLD_HOLD_SECONDS)
        self._free_until = 0.0
        self._tell()

    def _tell(self) -> None:
        """Tells Redis at once, whether anybody waits or not."""
        if self._is_closed:
            return
        telling = asyncio.create_task(self._report())
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _report(self) -> None:
        try:
            await self._ask([])
        except (RedisError, OSError):
            return  # what was to be told is told with the next lease

    async def _let_go(self) -> None:
        try:
            while self._waiting:
                await self._serve_one_lease()
        except (RedisError, OSError) as error:
            self._fail(error)
        finally:
            self._pump = None
            self._fail(None)

    async def _serve_one_lease(self) -> None:
        await asyncio.sleep(max(0.0, self._held_until - self._clock()))
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.passed.done())
        block = self._next_block()
        if not block:
            return
        asked = self._clock()
        costs = [waiter.cost for waiter in block]
        lease = await self._ask(costs)
        answered = self._clock()
        if not lease.calls:
            await asyncio.sleep(lease.start)
        elif any(lease.intervals) or lease.probe:
            if lease.probe:
                self._probe_at = answered
            # Redis's "now" lies between asking and answer: a moment begins by the later of them and lapses by the earlier. Where Redis
            # takes long for every answer all calls go as much later, and no more of them in a minute.
            self._round_trips.append(answered - asked)
            delay = answered - asked - min(self._round_trips)
            if not await self._use(lease, total(costs), answered, delay):
                EMPTY_LEASES.inc()
        else:
            self._free_until = (
                asked + _FREE_SECONDS if asked >= max(self._limited_at, self._named_at) else 0.0
            )
            self._pass_all(block)

    async def _ask(self, costs: list[Cost]) -> Lease:
        """One round trip: reports what there is to report, and asks for a lease."""
        asked = self._clock()
        report = self._take_report(asked)
        wish = {
            **as_json(report),
            "calls": len(costs),
            "cost": total(costs),
            "first": costs[0] if costs else NOTHING,
            "largest": self._largest,
            "operators": self._operators,
            "bucket": self._bucket.name,
        }
        told = self._hold
        if told is not None:
            wish |= {"reason": told[1], "ends": max(0.0, told[2] - asked)}
        if report.limited_age is not None and self._rejection and not wish.get("reason"):
            wish["reason"] = self._rejection
        try:
            calls, start, *rest = map(float, await self._lease(keys=self._keys, args=[json.dumps(wish)]))
        except BaseException:
            self._put_back(report, asked)
            raise
        if not int(calls) or rest[4]:  # tokens beyond those expected are part of a lease
            self._beyond[0] += int(report.beyond.input_tokens)
            self._beyond[1] += int(report.beyond.output_tokens)
        intervals = (rest[0], rest[1], rest[2], rest[3])
        if self._hold is told:  # one that came meanwhile is told next
            self._hold = None
        if intervals != self._intervals:
            self._intervals = intervals
            self._show()
        self._held_until = max(self._held_until, self._clock() + rest[5])
        return Lease(int(calls), start, intervals, bool(rest[4]), rest[5])

    def _take_report(self, now: float) -> Report:
        """What there is to tell, which is thereby told; see :meth:`_put_back`."""
        calls, read, written = self._unleased
        beyond = [max(0, tokens) for tokens in self._beyond]
        limited = self._limited
        report = Report(
            unleased=Cost(calls, read + written, read, written),
            unleased_age=now - self._unleased_since if calls else 0.0,
            beyond=Cost(0, sum(beyond), *beyond),
            named=self._named if now - self._named_at < NAMED_SECONDS else None,
            named_age=now - self._named_at,
            rejected=self._rejected,
            limited_age=None if limited is None else now - limited[0],
            retry_after=None if limited is None else limited[1],
            answered=self._answered,
            hold=0.0 if self._hold is None else max(0.0, self._hold[0] - now),
        )
        self._unleased = [0, 0, 0]
        self._beyond = [min(0, tokens) for tokens in self._beyond]
        self._rejected, self._limited, self._answered = 0, None, False
        return report

    def _put_back(self, report: Report, asked: float) -> None:
        """Keeps what Redis may not have been told for the next time."""
        self._unleased_since = asked - report.unleased_age
        self._unleased[0] += int(report.unleased.requests)
        self._unleased[1] += int(report.unleased.input_tokens)
        self._unleased[2] += int(report.unleased.output_tokens)
        self._beyond[0] += int(report.beyond.input_tokens)
        self._beyond[1] += int(report.beyond.output_tokens)
        self._rejected += report.rejected
        self._answered = self._answered or report.answered
        if report.limited_age is not None and self._limited is None:
            self._limited = (asked - report.limited_age, report.retry_after)

    def _show(self) -> None:
        for what, each in zip(RESOURCES, self._intervals, strict=True):
            show_limit(what, self._bucket.connection, self._bucket.model, per_minute(each))

    async def _use(self, lease: Lease, leased: Cost, answered: float, delay: float) -> int:
        """Lets as many of the waiting go as a lease has calls, each at its moment, until one comes too late or there is a hold.

        Returns:
            How many went.
        """
        at, end, gone = answered + lease.start, math.inf, 0
        if not lease.probe:
            end = at + duration(leased, lease.intervals) + 1e-6
        spent = NOTHING
        while self._waiting and gone < lease.calls:
            waiter = self._waiting[0]
            now = self._clock()
            if now + _TICK < self._held_until:  # Redis may see a hold end a little earlier
                return gone
            after = spent.plus(waiter.cost)
            goes = at + duration(spent, lease.intervals)
            lapsed = now + delay - SLACK_SECONDS
            if goes < lapsed:  # what lapsed is lost
                at += lapsed - goes
                goes = lapsed
            if at + duration(after, lease.intervals) > end:
                return gone
            if goes > now:
                await asyncio.sleep(max(goes - now, _TICK))
                continue
            self._waiting.popleft()
            if not waiter.passed.done():
                waiter.passed.set_result(goes - delay + SLACK_SECONDS)
                spent = after
                gone += 1
        return gone

    def _pass_all(self, block: list[_Waiter]) -> None:
        """Lets all go that a lease without limits is for; the next ones pass at once."""
        for waiter in block:
            if not waiter.passed.done():
                self.passes_at_once(Usage(int(waiter.cost.input_tokens), int(waiter.cost.output_tokens)))
                waiter.passed.set_result(math.inf)
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.passed.done())

    def _next_block(self) -> list[_Waiter]:
        """The first of the waiting whose calls are worth a span together; at least one, if any waits."""
        block: list[_Waiter] = []
        spent = NOTHING
        for waiter in self._waiting:
            spent = spent.plus(waiter.cost)
            if block and duration(spent, self._intervals) > SPAN_SECONDS:
                break
            block.append(waiter)
        return block

    def _fail(self, reason: Exception | None) -> None:
        why = "it was closed" if reason is None else f"{type(reason).__name__}: {reason}"
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.passed.done():
                waiter.passed.set_exception(_unavailable(why))


def _unavailable(reason: str) -> LimiterUnavailableError:
    return LimiterUnavailableError(f"the shared rate limiter cannot be reached: {reason}")


def as_json(report: Report) -> dict[str, object]:
    """Return the fields of a report that are set. An age of 0 is set."""
    return {
        name: value
        for name in report.__slots__
        if (value := getattr(report, name)) is not None and value is not False
    } | {"unleased_age": report.unleased_age, "rejected": report.rejected, "hold": report.hold}
