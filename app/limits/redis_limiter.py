"""One rate limit for all workers, kept in Redis.

A bucket is a connection's model. Redis holds, for requests and for tokens, the *theoretical arrival time* of the
generic cell rate algorithm (ITU-T I.371, annex A): the moment from which the next call is due. A worker leases a stretch of
that time for the calls that wait in it, one round trip for all of them, and lets each go in its own slot of the
stretch. Stretches never overlap, so any number of workers together are as smooth as one, and a slot that nobody
uses in time lapses, even if its call has already been told to go and its loop was busy.

The rate is the operator's or, where that is higher or missing, the one that the provider's replies name. After a pause
it ramps up. Emptying Redis loses what was leased: see :mod:`app.limits.scripts` for how buckets begin anew.
"""

import asyncio
import contextlib
import math
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.domain.model import ProviderLimits
from app.limits.scripts import BEGIN, LEARNED_SECONDS, LEASE, PAUSE, SPAN_SECONDS
from app.limits.shared_slots import SharedSlots
from app.ports import LimiterUnavailableError
from app.telemetry.metrics import LAPSED_SLOTS, show_limit

SLACK_SECONDS = 0.25
"""Seconds after which a slot lapses; also what a burst can amount to, in seconds' worth of the rate."""
_TICK = 0.004
"""Seconds between two looks at the slots: those that opened meanwhile go together."""
_PAUSE_CHECK = 1.0
"""Seconds for which calls without a rate limit go without asking whether there is a pause."""
_TOLD_AGAIN = 0.1
"""A pause that ends no later than so many seconds after one that all know of is not told again."""


class Rates(Protocol):
    """What a provider allows for one model."""

    @property
    def requests_per_minute(self) -> float | None:
        """Calls; ``None`` for no limit."""
        ...

    @property
    def tokens_per_minute(self) -> float | None:
        """Input and output tokens; ``None`` for no limit."""
        ...

    @property
    def max_in_flight(self) -> int | None:
        """Calls under way at once; ``None`` for no limit."""
        ...


class RedisRateLimiter:
    """The ``RateLimiter`` of all processes that share a Redis; each instance belongs to one event loop.

    No 60 seconds hold more calls than the limit, nor more tokens than the limit and one call's; no second holds more
    than 1.25 times its share. Without Redis no call passes, and calls pass again once it is back.

    Args:
        redis: Where the buckets are.
        rates_of: The operator's limits of a connection and model.
        prefix: First part of all keys.
    """

    def __init__(
        self, redis: Redis, rates_of: Callable[[str, str], Rates], *, prefix: str = "assay:limit"
    ) -> None:
        self._redis = redis
        self._rates_of = rates_of
        self._prefix = prefix
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{id(self):x}"
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._slots: dict[tuple[str, str], SharedSlots | None] = {}

    async def begin(self) -> None:
        """Lets Redis note its epoch, so that it lies in the past when the first call comes."""
        with contextlib.suppress(RedisError, OSError):  # the first call will ask again
            await self._redis.register_script(BEGIN)(keys=[self._prefix, self._epoch])

    def bounds(self, connection: str, model: str) -> bool:
        """Whether the operator bounds the calls in flight."""
        return self._slots_of(connection, model) is not None

    async def enter(self, connection: str, model: str) -> None:
        """Waits for a place among the calls in flight, to be given back with :meth:`leave`.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached.
        """
        slots = self._slots_of(connection, model)
        if slots is not None:
            await slots.enter()

    def leave(self, connection: str, model: str) -> None:
        """Gives back what :meth:`enter` gave."""
        slots = self._slots_of(connection, model)
        if slots is not None:
            slots.leave()

    def lets_all_pass(self, connection: str, model: str) -> bool:
        """Whether Redis has said within the last second that there is neither a limit nor a pause."""
        return self._bucket(connection, model).free

    async def acquire(self, connection: str, model: str, tokens: int) -> None:
        """Waits until one call of about ``tokens`` tokens may be sent; it must be sent at once.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached.
        """
        await self._bucket(connection, model).acquire(tokens)

    def spent(self, connection: str, model: str, tokens: int) -> None:
        """Accounts for tokens beyond those that :meth:`acquire` was told of."""
        self._bucket(connection, model).spent(tokens)

    def learn(self, connection: str, model: str, limits: ProviderLimits) -> None:
        """Takes the limits that a reply named for everybody's, where they are lower than the operator's.

        All know them with their next lease, within a second. They are forgotten after a minute in which no reply
        names them.
        """
        self._bucket(connection, model).learn(limits)

    def hold(self, connection: str, model: str, seconds: float) -> None:
        """Holds back this process's calls for ``seconds``, at once."""
        self._bucket(connection, model).hold(seconds)

    async def pause(self, connection: str, model: str, seconds: float) -> None:
        """Holds back everybody's calls for ``seconds``: this process's at once, all others' within a second.

        Afterwards, also after a pause of 0 seconds, the rate ramps up.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached; this process pauses all the same.
        """
        await self._bucket(connection, model).pause(seconds)

    async def close(self) -> None:
        """Ends all waiting, which fails with ``LimiterUnavailableError``. Leaves Redis open: it is the caller's."""
        for bucket in self._buckets.values():
            await bucket.close()
        for slots in self._slots.values():
            if slots is not None:
                await slots.close()

    @property
    def _epoch(self) -> str:
        return f"{self._prefix}:epoch"

    def _bucket(self, connection: str, model: str) -> "_Bucket":
        bucket = self._buckets.get((connection, model))
        if bucket is None:
            keys = [f"{self._prefix}:{connection}/{model}", self._epoch]
            bucket = _Bucket(self._redis, keys, connection, model, self._rates_of(connection, model))
            self._buckets[connection, model] = bucket
        return bucket

    def _slots_of(self, connection: str, model: str) -> SharedSlots | None:
        name = (connection, model)
        if name not in self._slots:
            limit = self._rates_of(connection, model).max_in_flight
            key = f"{self._prefix}:slots:{connection}/{model}"
            self._slots[name] = (
                None
                if limit is None
                else SharedSlots(self._redis, key=key, epoch=self._epoch, limit=limit, owner=self._owner)
            )
        return self._slots[name]


@dataclass(slots=True, eq=False)
class _Waiter:
    tokens: int
    passed: asyncio.Future[float] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """When the slot lapses."""


class _Stretch:
    """Leased time, in which each call has a slot as long as what it takes of a limit."""

    def __init__(self, begin: float, amount: int, interval: float) -> None:
        self._at = begin
        self._end = begin + amount * interval
        self._interval = interval

    def next(self, amount: int, lapsed: float) -> float:
        """When the next slot opens, what lapsed being lost; infinity if what is left is too short."""
        if self._interval == 0:
            return -math.inf
        self._at = max(self._at, lapsed)
        return self._at if self._at + amount * self._interval <= self._end + 1e-6 else math.inf

    def take(self, amount: int) -> None:
        self._at += amount * self._interval


@dataclass(frozen=True, slots=True)
class _Learned:
    """What a reply named, in seconds per call and per token (0 for no limit), and when."""

    per_call: float
    per_token: float
    at: float


class _Bucket:
    """One connection's model, as one process sees it: the calls that wait, and a task that lets them go."""

    def __init__(self, redis: Redis, keys: list[str], connection: str, model: str, rates: Rates) -> None:
        self._keys = keys
        self._clock = asyncio.get_running_loop().time
        self._connection, self._model = connection, model
        self._lease = redis.register_script(LEASE)
        self._pause = redis.register_script(PAUSE)
        self._operators = (_interval(rates.requests_per_minute), _interval(rates.tokens_per_minute))
        self._request_interval, self._token_interval = self._operators
        self._show()
        self._learned: _Learned | None = None
        self._largest = 0
        self._debt = 0
        self._free_until = 0.0
        self._paused_until = 0.0
        self._told_until = 0.0
        self._waiting: deque[_Waiter] = deque()
        self._pump: asyncio.Task[None] | None = None

    @property
    def free(self) -> bool:
        return self._paused_until <= self._clock() < self._free_until

    async def acquire(self, tokens: int) -> None:
        if self.free:
            return
        clock = self._clock
        self._largest = max(self._largest, tokens)
        waiter = _Waiter(tokens)
        self._waiting.append(waiter)
        while True:
            if self._pump is None:
                self._pump = asyncio.create_task(self._let_go())
            lapses = await waiter.passed
            if clock() <= lapses:
                return
            LAPSED_SLOTS.inc()
            # The loop was so busy that the slot has lapsed meanwhile: sent now, the call would be one of a burst.
            waiter = _Waiter(tokens)
            self._waiting.appendleft(waiter)

    def spent(self, tokens: int) -> None:
        if self._token_interval:
            self._debt += tokens

    def learn(self, limits: ProviderLimits) -> None:
        self._learned = _Learned(
            _interval(limits.requests_per_minute),
            _interval(limits.tokens_per_minute),
            asyncio.get_running_loop().time(),
        )
        if self._learned.per_call or self._learned.per_token:
            self._free_until = 0.0

    def hold(self, seconds: float) -> float:
        until = self._clock() + seconds
        self._paused_until = max(self._paused_until, until)
        self._free_until = 0.0
        return until

    async def pause(self, seconds: float) -> None:
        until = self.hold(seconds)
        if until <= self._told_until + _TOLD_AGAIN:
            return
        self._told_until = until
        try:
            await self._pause(keys=self._keys[:1], args=[round(seconds * 1e6)])
        except BaseException as error:
            self._told_until = 0.0  # also if it was cancelled: perhaps nobody knows of it
            if isinstance(error, (RedisError, OSError)):
                raise _unavailable(error) from error
            raise

    async def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
            self._pump = None
        self._fail(None)  # a task that is cancelled before its first step does not clean up

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
        clock = asyncio.get_running_loop().time
        await _sleep_until(self._paused_until, clock())
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.passed.done())
        block = self._next_block()
        if not block:
            return
        debt, self._debt = self._debt, 0
        tokens = sum(waiter.tokens for waiter in block)
        asked = clock()
        try:
            granted, first, second, per_call, per_token = await self._lease(
                keys=self._keys, args=[len(block), tokens + debt, self._largest, *self._intervals(asked)]
            )
        except BaseException:
            self._debt += debt
            raise
        # Redis's "now" lies between asking and answer: slots open by the later of them and lapse by the earlier.
        answered = clock()
        self._set_intervals(float(per_call) / 1e6, float(per_token) / 1e6)
        if not granted:
            self._debt += debt
            await asyncio.sleep(first / 1e6)
            return
        if not (self._request_interval or self._token_interval):
            self._free_until = asked + _PAUSE_CHECK
        requests = _Stretch(answered + first / 1e6, len(block), self._request_interval)
        paid = answered + second / 1e6 + debt * self._token_interval
        await self._use(requests, _Stretch(paid, tokens, self._token_interval), answered - asked)

    def _set_intervals(self, per_call: float, per_token: float) -> None:
        if (per_call, per_token) != (self._request_interval, self._token_interval):
            self._request_interval, self._token_interval = per_call, per_token
            self._show()

    def _show(self) -> None:
        for what, interval in (("requests", self._request_interval), ("tokens", self._token_interval)):
            per_minute = (60 + SLACK_SECONDS) / interval if interval else None
            show_limit(what, self._connection, self._model, per_minute)

    def _intervals(self, now: float) -> list[str]:
        """Arguments of the script: the operator's intervals, the learned ones and their age; in microseconds."""
        learned = self._learned
        if learned is not None and now - learned.at > LEARNED_SECONDS:
            learned = self._learned = None
        values = [*self._operators, 0.0, 0.0, -1e-6]
        if learned is not None:
            values[2:] = [learned.per_call, learned.per_token, now - learned.at]
        return [f"{value * 1e6:.6f}" for value in values]

    async def _use(self, requests: "_Stretch", tokens: "_Stretch", delay: float) -> None:
        """Lets the waiting go in the slots of a lease, until it is used up or lapsed, or there is a pause."""
        clock = asyncio.get_running_loop().time
        while self._waiting:
            waiter = self._waiting[0]
            now = clock()
            lapsed = now + delay - SLACK_SECONDS
            opens = max(requests.next(1, lapsed), tokens.next(waiter.tokens, lapsed))
            if opens == math.inf or now < self._paused_until:
                return
            if opens > now:
                await asyncio.sleep(max(opens - now, _TICK))
                continue
            self._waiting.popleft()
            if not waiter.passed.done():
                limited = opens > -math.inf
                waiter.passed.set_result(opens - delay + SLACK_SECONDS if limited else math.inf)
                requests.take(1)
                tokens.take(waiter.tokens)

    def _next_block(self) -> list[_Waiter]:
        """The first of the waiting whose slots are worth a span together; at least one, if any waits."""
        block: list[_Waiter] = []
        requests_time = tokens_time = 0.0
        for waiter in self._waiting:
            requests_time += self._request_interval
            tokens_time += self._token_interval * waiter.tokens
            if block and max(requests_time, tokens_time) > SPAN_SECONDS:
                break
            block.append(waiter)
        return block

    def _fail(self, reason: Exception | None) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.passed.done():
                waiter.passed.set_exception(_unavailable(reason))


def _interval(per_minute: float | None) -> float:
    """Seconds between two calls (or tokens); 0 for no limit.

    A slot is used up to a slack late, so 60 s can hold the slots of 60 s and a slack: those make the limit.
    """
    return 0.0 if per_minute is None else (60 + SLACK_SECONDS) / per_minute


async def _sleep_until(moment: float, now: float) -> None:
    if moment > now:
        await asyncio.sleep(moment - now)


def _unavailable(reason: Exception | None) -> LimiterUnavailableError:
    why = "it was closed" if reason is None else f"{type(reason).__name__}: {reason}"
    return LimiterUnavailableError(f"the shared rate limiter cannot be reached: {why}")
