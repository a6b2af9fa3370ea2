"""How many calls may be in flight at once, over all workers: each process leases a share of them from Redis.

How many that are is found by :mod:`app.limits.concurrency`, up to the operator's limit. A share lasts some seconds and is renewed
meanwhile, so that the share of a process that died comes back by itself.

Where tenants share a model, a few of its slots are kept for tenants who have fewer than that: calls that take minutes would hold up
the others' else.
"""

import asyncio
import contextlib
import json
import sys
from collections import Counter, deque
from typing import NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.limits.concurrency import MOST, START, Latencies, Sample, State, next_state
from app.limits.outage import AWAY, Errors, Outage
from app.limits.slots_script import SHARE
from app.ports import CallOutcome, LimiterUnavailableError, Observation, ProviderUnreachableError
from app.telemetry.vital import start_vital

LASTING_SECONDS = 15.0
"""How long a share lasts that is not renewed."""
_MARGIN_SECONDS = 1.0
"""So much earlier than Redis does its holder regard a share as lapsed."""
_RENEWAL_SECONDS = 1.0
_STARVED_SECONDS = 0.1
"""How often a process asks for more while calls wait."""
_SHORTEST_REST_SECONDS = 0.01
"""Between two requests to Redis, however soon there is news."""


class Slots(NamedTuple):
    """What the slots of a model are of.

    Attributes:
        model: With its connection.
        key: Of the shares.
        epoch: Key of the epoch; see :mod:`app.limits.scripts`.
        outage: Key of the connection's outage.
        holds: Key of what people are shown.
        most: The operator's limit of calls in flight, of all processes together; ``None`` for none.
        owner: This process, unlike all others.
        deadline_seconds: After which a call is given up.
        outage_seconds: After which waiting for a server that is away is given up.
    """

    model: str
    key: str
    epoch: str
    outage: str
    holds: str
    most: int | None
    owner: str
    deadline_seconds: float
    outage_seconds: float


class _Answer(NamedTuple):
    """What Redis answers; see :data:`SHARE`."""

    share: int
    demand: int
    version: str
    state: State
    sample: Sample
    away_seconds: float
    reason: str


class _Waiter(NamedTuple):
    """A call that waits for a slot."""

    granted: "asyncio.Future[None]"
    tenant: str | None


class Place(NamedTuple):
    """A tenant's slot."""

    slots: "SharedSlots"
    tenant: str

    def release(self) -> None:
        """Gives it back."""
        self.slots.release(self.tenant)


class SharedSlots:
    """The slots of one connection's model, as one process sees them; belongs to one event loop.

    Args:
        redis: Where the shares are.
        slots: What they are of.
        outage: The connection's, in this process.
    """

    def __init__(self, redis: Redis, slots: Slots, outage: Outage) -> None:
        self._script = redis.register_script(SHARE)
        self._slots = slots
        self._outage = outage
        self._errors = Errors()
        self._ceiling = MOST if slots.most is None else slots.most
        self._clock = asyncio.get_running_loop().time
        self._share = 0
        self._lapses = 0.0
        self._of_kept = 0
        self._kept = 0
        self._entitled: frozenset[str | None] = frozenset()
        self._in_use = 0
        self._used: Counter[str | None] = Counter()
        self._peak = 0
        self._waiting: deque[_Waiter] = deque()
        self._keeper: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._version = ""
        self._state = self._first = State(min(START, self._ceiling))
        self._enough = self._state.enough
        self._latencies = Latencies(self._clock())
        self._is_closed = False

    def enter_at_once(self, tenant: str | None = None) -> bool:
        """Whether there was a slot; then the caller has it and must :meth:`release` it.

        Args:
            tenant: Whose the call is, where tenants share the model.
        """
        if (self._waiting and not self._is_kept_for(tenant)) or not self._free(tenant):
            return False
        self._take(tenant)
        return True

    async def enter(self, tenant: str | None = None) -> None:
        """Waits for a slot; the caller must :meth:`release` it.

        Args:
            tenant: Whose the call is, where tenants share the model.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached, or this is closed.
            ProviderUnreachableError: If the server has been away for too long.
        """
        if self.enter_at_once(tenant):
            return
        if self._is_closed:
            raise _unavailable("it was closed")
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._waiting or (tenant is not None and not self._used[tenant]):
            self._news.set()
        self._waiting.append(_Waiter(granted, tenant))
        if self._keeper is None:
            self._keeper = start_vital("shared slots", self._keep(), may_return=True)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.release(tenant)
            raise

    def release(self, tenant: str | None = None) -> None:
        """Gives a slot back."""
        self._in_use -= 1
        if tenant is not None:
            self._used[tenant] -= 1
            if not self._used[tenant]:
                del self._used[tenant]
        self._hand_out()

    def observe(self, observation: Observation) -> None:
        """Takes in how a call ended; to be told before its slot is released."""
        outcome, outage, errors = observation.outcome, self._outage, self._errors
        if outcome is CallOutcome.ANSWERED:
            usage = observation.usage
            tokens = usage.output_tokens if usage is not None else 0
            self._latencies.answered(self._clock(), observation.latency_seconds, tokens)
            outage.reached()
            errors.answered()
            if self._latencies.ended >= self._enough:
                self._news.set()
        elif outcome in {CallOutcome.RATE_LIMITED, CallOutcome.REJECTED}:
            outage.reached()
        elif outcome is CallOutcome.FAILED:
            outage.reached()
            errors.failed_in(observation.call, observation.reason)
        else:
            self._latencies.overload(self._clock(), observation.latency_seconds)
            if outcome is CallOutcome.UNREACHABLE:
                outage.failed(observation.reason)
            elif outcome is CallOutcome.OVERLOADED:
                outage.reached()
                errors.failed_in(observation.call, observation.reason, first_calls_judge=False)
            self._news.set()
        if outage.news or errors.news:
            self._news.set()
        if AWAY in {outage.news, errors.news} or outage.is_on or errors.is_on:
            self._share = 0  # nobody goes in the place of the call that has tried it, before Redis says so

    @property
    def is_full(self) -> bool:
        """Whether all slots of the process's share are in use."""
        return self._in_use >= self._share

    @property
    def is_failing(self) -> bool:
        """Whether all calls of the model are known to end in errors of its server."""
        return self._errors.is_on or self._errors.news == AWAY

    async def close(self) -> None:
        """Ends all waiting, and gives the share back if Redis can be reached."""
        self._is_closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        self._fail(_unavailable("it was closed"))
        with contextlib.suppress(RedisError, OSError):
            await self._ask(0)

    def _is_kept_for(self, tenant: str | None) -> bool:
        return tenant in self._entitled and self._used[tenant] < self._kept

    def _free(self, tenant: str | None = None) -> bool:
        share = self._share if self._is_kept_for(tenant) else self._share - self._of_kept
        return self._in_use < share and self._clock() < self._lapses

    def _take(self, tenant: str | None) -> None:
        self._in_use += 1
        if tenant is not None:
            self._used[tenant] += 1
        self._peak = max(self._peak, self._in_use)

    def _hand_out(self) -> None:
        """Lets those that wait have what is free, in order of arrival; whoever may have only others' slots is passed over."""
        if not self._waiting or self._in_use >= self._share:
            return
        passed_over = []
        while self._waiting and self._in_use < self._share:
            waiter = self._waiting.popleft()
            if waiter.granted.done():
                continue
            if self._free(waiter.tenant):
                self._take(waiter.tenant)
                waiter.granted.set_result(None)
            else:
                passed_over.append(waiter)
        self._waiting.extendleft(reversed(passed_over))

    async def _keep(self) -> None:
        """Renews the share, or asks for more, for as long as there are calls; gives it back after the last."""
        try:
            while True:
                self._news.clear()
                self._waiting = deque(waiter for waiter in self._waiting if not waiter.granted.done())
                want, self._peak = max(self._peak, self._in_use + len(self._waiting)), self._in_use
                idle = not (self._waiting or self._in_use)
                try:
                    await self._renew(0 if idle else want)
                except (RedisError, OSError) as error:
                    self._fail(_unavailable(f"{type(error).__name__}: {error}"))
                self._hand_out()
                if idle and not (self._waiting or self._in_use):
                    return
                await self._rest()
        finally:
            self._keeper = None
            self._fail(_unavailable("it was closed"))

    async def _rest(self) -> None:
        await asyncio.sleep(_SHORTEST_REST_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STARVED_SECONDS if self._waiting else _RENEWAL_SECONDS):
                await self._news.wait()

    async def _renew(self, want: int) -> None:
        """Renews the share, and changes the limit for all where the calls that have ended are a reason."""
        answer = await self._ask(want)
        after = next_state(
            answer.state,
            answer.sample,
            demand=answer.demand,
            ceiling=self._ceiling,
            deadline=self._slots.deadline_seconds,
        )
        if after != answer.state and not (self._outage.is_on or self._errors.is_on):
            answer = await self._ask(want, after)
        if answer.away_seconds >= self._slots.outage_seconds:
            self._fail(ProviderUnreachableError(answer.reason, answer.away_seconds))

    async def _ask(self, want: int, after: State | None = None) -> _Answer:
        now = self._clock()
        held = self._share if now < self._lapses else self._in_use
        news, errors, slots, most = self._outage.news, self._errors.news, self._slots, self._slots.most
        sample = self._latencies.take()
        arguments = (
            *(slots.owner, self._in_use, held, want, _microseconds(LASTING_SECONDS)),
            *(self._ceiling, int(most is not None), int(bool(self._waiting)), self._version),
            *("" if after is None else json.dumps(after), (after or self._first).limit),
            *(news, self._outage.reason, _microseconds(slots.outage_seconds)),
            *(errors, self._errors.reason, slots.model),
            *(sample.ended, sample.overloaded, sample.latency, sample.compared, sample.expected),
            json.dumps(self._tenants()),
        )
        if most is not None:
            # Until Redis has said how much is ours, and if it never does, no call starts but in the place of one that ended.
            self._share = self._in_use
        found, failing = f"{slots.key}:found", f"{slots.key}:errors"
        keys = (slots.key, slots.epoch, found, slots.outage, failing, slots.holds, f"{slots.key}:tenants")
        answer = await self._script(keys=keys, args=arguments)
        share, demand, version, state, age, away, reason, fails, *sums, of_kept, kept, entitled = answer
        self._share, self._of_kept, self._kept = int(share), of_kept, kept
        self._entitled = frozenset(name.decode() for name in entitled)
        self._lapses = now + LASTING_SECONDS - _MARGIN_SECONDS
        self._outage.told(news, is_on=away >= 0)
        self._errors.told(errors, is_on=bool(fails))
        self._follow(version.decode(), State(*json.loads(state)) if state else self._first)
        ended, overloaded, *seconds = map(float, sums)
        seen = Sample(age / 1e6, round(ended), round(overloaded), *seconds)
        missing = self._state.enough - seen.ended
        can_change = self._state.before or self._state.limit < self._ceiling
        self._enough = missing if missing > 0 and can_change else sys.maxsize
        return _Answer(self._share, demand, self._version, self._state, seen, away / 1e6, reason.decode())

    def _tenants(self) -> dict[str, tuple[int, int]]:
        """How many calls of each tenant have a slot, and how many wait, where tenants share the model."""
        waiting = Counter(waiter.tenant for waiter in self._waiting)
        tenants = self._used.keys() | waiting.keys()
        return {name: (self._used[name], waiting[name]) for name in tenants if name is not None}

    def _follow(self, version: str, state: State) -> None:
        """Begins a sample of the state that all processes are in."""
        if version != self._version:
            self._latencies.begin(self._clock(), self._state, state)
            self._version, self._state = version, state

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.granted.done():
                waiter.granted.set_exception(error)


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _unavailable(reason: str) -> LimiterUnavailableError:
    return LimiterUnavailableError(f"the shared limit of calls in flight cannot be reached: {reason}")
