"""One rate limit for all workers, kept in Redis.

A bucket is a connection's model. Redis holds, for requests and for tokens, the *theoretical arrival time* of the
generic cell rate algorithm (ITU-T I.371, annex A): the moment from which the next call is due. A worker leases a stretch of
that time for the calls that wait in it, one round trip for all of them, and lets each go in its own slot of the
stretch. Stretches never overlap, so any number of workers together are as smooth as one, and a slot that nobody
uses lapses.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.ports import LimiterUnavailableError

_CREDIT = 0.1
"""Seconds by which a first slot may lie in the past, so that the round trip between two leases costs no calls."""
_SLACK = 0.25
"""Seconds after which a slot lapses; also what a burst can amount to, in seconds' worth of the rate."""
_SPAN = 0.2
"""Seconds' worth of slots in one lease, unless one call alone is worth more."""
_HORIZON = 0.3
"""Seconds ahead of time that a lease may begin. With span and slack: a pause holds everybody back within a second."""
_PAUSE_CHECK = 1.0
"""Seconds for which calls without a rate limit go without asking whether there is a pause."""

_LEASE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local request_time, token_time, credit, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'pause')
local pause = tonumber(state[3] or 0)
if pause > now then return {0, pause - now, 0} end
if request_time == 0 and token_time == 0 then return {1, 0, 0} end
local requests = math.max(tonumber(state[1] or 0), now - credit)
local tokens = math.max(tonumber(state[2] or 0), now - credit)
local start = math.max(requests, tokens)
if start > now + horizon then return {0, start - now - horizon, 0} end
redis.call('HSET', KEYS[1], 'requests', string.format('%.0f', requests + request_time),
  'tokens', string.format('%.0f', tokens + token_time))
redis.call('PEXPIRE', KEYS[1], math.ceil((start + request_time + token_time - now) / 1000) + 60000)
return {1, requests - now, tokens - now}
"""
"""Leases a stretch of ``ARGV[1]`` microseconds of requests and ``ARGV[2]`` of tokens, or says how long to wait."""

_PAUSE = """
local clock = redis.call('TIME')
local pause = clock[1] * 1000000 + clock[2] + tonumber(ARGV[1])
if pause > tonumber(redis.call('HGET', KEYS[1], 'pause') or 0) then
  redis.call('HSET', KEYS[1], 'pause', string.format('%.0f', pause))
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), math.ceil(ARGV[1] / 1000) + 60000))
end
"""


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


class RedisRateLimiter:
    """The ``RateLimiter`` of all processes that share a Redis; each instance belongs to one event loop.

    No 60 seconds hold more calls than the limit, nor more tokens than the limit and one call's; no second holds more
    than 1.25 times its share. Without Redis no call passes, and calls pass again once it is back.

    Args:
        redis: Where the buckets are.
        rates_of: The rates of a connection and model.
        prefix: First part of all keys.
    """

    def __init__(
        self, redis: Redis, rates_of: Callable[[str, str], Rates], *, prefix: str = "assay:limit"
    ) -> None:
        self._redis = redis
        self._rates_of = rates_of
        self._prefix = prefix
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    async def acquire(self, connection: str, model: str, tokens: int) -> None:
        """Waits until one call of about ``tokens`` tokens may be sent.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached.
        """
        await self._bucket(connection, model).acquire(tokens)

    async def pause(self, connection: str, model: str, seconds: float) -> None:
        """Holds back everybody's calls for ``seconds``: this process's at once, all others' within a second.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached; this process pauses all the same.
        """
        await self._bucket(connection, model).pause(seconds)

    async def close(self) -> None:
        """Ends all waiting, which fails with ``LimiterUnavailableError``. Leaves Redis open: it is the caller's."""
        for bucket in self._buckets.values():
            await bucket.close()

    def _bucket(self, connection: str, model: str) -> "_Bucket":
        bucket = self._buckets.get((connection, model))
        if bucket is None:
            rates = self._rates_of(connection, model)
            bucket = _Bucket(self._redis, f"{self._prefix}:{connection}/{model}", rates)
            self._buckets[connection, model] = bucket
        return bucket


@dataclass(slots=True, eq=False)
class _Waiter:
    tokens: int
    passed: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


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


class _Bucket:
    """One connection's model, as one process sees it: the calls that wait, and a task that lets them go."""

    def __init__(self, redis: Redis, key: str, rates: Rates) -> None:
        self._key = key
        self._lease = redis.register_script(_LEASE)
        self._pause = redis.register_script(_PAUSE)
        # A slot is used up to a slack late, so 60 s can hold the slots of 60 s and a slack: those make the limit.
        self._request_interval = _interval(rates.requests_per_minute)
        self._token_interval = _interval(rates.tokens_per_minute)
        self._limited = bool(self._request_interval or self._token_interval)
        self._free_until = 0.0
        self._paused_until = 0.0
        self._waiting: deque[_Waiter] = deque()
        self._pump: asyncio.Task[None] | None = None

    async def acquire(self, tokens: int) -> None:
        if self._paused_until <= asyncio.get_running_loop().time() < self._free_until:
            return
        waiter = _Waiter(tokens)
        self._waiting.append(waiter)
        if self._pump is None:
            self._pump = asyncio.create_task(self._let_go())
        await waiter.passed

    async def pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)
        try:
            await self._pause(keys=[self._key], args=[round(seconds * 1e6)])
        except (RedisError, OSError) as error:
            raise _unavailable(error) from error

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
        tokens = sum(waiter.tokens for waiter in block)
        seconds = (len(block) * self._request_interval, tokens * self._token_interval, _CREDIT, _HORIZON)
        asked = clock()
        granted, first, second = await self._lease(
            keys=[self._key], args=[round(part * 1e6) for part in seconds]
        )
        # Redis's "now" lies between asking and answer: slots open by the later of them and lapse by the earlier.
        answered = clock()
        if not granted:
            await asyncio.sleep(first / 1e6)
            return
        if not self._limited:
            self._free_until = asked + _PAUSE_CHECK
        requests = _Stretch(answered + first / 1e6, len(block), self._request_interval)
        await self._use(
            requests, _Stretch(answered + second / 1e6, tokens, self._token_interval), answered - asked
        )

    async def _use(self, requests: "_Stretch", tokens: "_Stretch", delay: float) -> None:
        """Lets the waiting go in the slots of a lease, until it is used up or lapsed, or there is a pause."""
        clock = asyncio.get_running_loop().time
        while self._waiting:
            waiter = self._waiting[0]
            now = clock()
            lapsed = now + delay - _SLACK
            opens = max(requests.next(1, lapsed), tokens.next(waiter.tokens, lapsed))
            if opens == math.inf or now < self._paused_until:
                return
            if opens > now:
                await asyncio.sleep(opens - now)
                continue
            self._waiting.popleft()
            if not waiter.passed.done():
                waiter.passed.set_result(None)
                requests.take(1)
                tokens.take(waiter.tokens)

    def _next_block(self) -> list[_Waiter]:
        """The first of the waiting whose slots are worth a span together; at least one, if any waits."""
        block: list[_Waiter] = []
        requests_time = tokens_time = 0.0
        for waiter in self._waiting:
            requests_time += self._request_interval
            tokens_time += self._token_interval * waiter.tokens
            if block and max(requests_time, tokens_time) > _SPAN:
                break
            block.append(waiter)
        return block

    def _fail(self, reason: Exception | None) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.passed.done():
                waiter.passed.set_exception(_unavailable(reason))


def _interval(per_minute: float | None) -> float:
    """Seconds between two calls (or tokens); 0 for no limit."""
    return 0.0 if per_minute is None else (60 + _SLACK) / per_minute


async def _sleep_until(moment: float, now: float) -> None:
    if moment > now:
        await asyncio.sleep(moment - now)


def _unavailable(reason: Exception | None) -> LimiterUnavailableError:
    why = "it was closed" if reason is None else f"{type(reason).__name__}: {reason}"
    return LimiterUnavailableError(f"the shared rate limiter cannot be reached: {why}")
