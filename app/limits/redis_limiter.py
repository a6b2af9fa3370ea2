"""One limit for all workers, kept in Redis: how fast, and how many at once, a connection's model may be called.

A worker leases a part of the model's timeline (:mod:`app.limits.timeline`) for the calls that wait in it, one round trip for all of
them, and lets each go at its own moment. Leases never overlap, so any number of workers together are as smooth as one. A moment
that nobody uses in time lapses, even if its call has already been told to go and its loop was busy.

The limit is the operator's or, where that is higher or missing, the one that the provider's replies name or a 429 showed. Emptying
Redis loses what was leased: see :mod:`app.limits.scripts` for how buckets begin anew.
"""

import contextlib
import os
import socket
from collections.abc import Callable
from typing import NamedTuple, Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.domain.providers.model import Usage
from app.limits.outage import Outage
from app.limits.scripts import BEGIN
from app.limits.shared_rates import Bucket, RateLimits, SharedRates
from app.limits.shared_slots import Place, SharedSlots, Slots
from app.ports import Observation, Slot
from app.telemetry.metrics import Calls, calls_of, waiting


class Rates(RateLimits, Protocol):
    """What the operator allows for one model."""

    @property
    def max_in_flight(self) -> int | None:
        """Calls under way at once; ``None`` for no limit."""
        ...


class RedisRateLimiter:
    """The ``RateLimiter`` of all processes that share a Redis; each instance belongs to one event loop.

    No 60 seconds hold more calls or tokens than the limit; no second holds more than 1.25 times its share, and one call's. Without Redis no call passes, and calls pass again once it is back.

    Args:
        redis: Where the buckets are.
        rates_of: The operator's limits of a connection and model.
        deadline_seconds: Seconds after which a call is given up.
        outage_seconds: Seconds after which calls are told that their server has been away for too long.
        prefix: First part of all keys.
    """

    def __init__(
        self,
        redis: Redis,
        rates_of: Callable[[str, str], Rates],
        *,
        deadline_seconds: float = 120.0,
        outage_seconds: float = 600.0,
        prefix: str = "assay:limit",
    ) -> None:
        self._redis = redis
        self._deadline, self._outage_seconds = deadline_seconds, outage_seconds
        self._rates_of = rates_of
        self._prefix = prefix
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{id(self):x}"
        self._buckets: dict[tuple[str, str], _Model] = {}
        self._outages: dict[str, Outage] = {}

    async def begin(self) -> None:
        """Lets Redis note its epoch, so that it lies in the past when the first call comes."""
        with contextlib.suppress(RedisError, OSError):  # the first call will ask again
            await self._redis.register_script(BEGIN)(keys=[self._prefix, self._epoch])

    async def admit(self, connection: str, model: str, expected: Usage, tenant: str | None = None) -> Slot:
        """Waits until one call may be sent: for a place among the calls in flight, the end of a pause, and the rates.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached.
            ProviderUnreachableError: If the connection's server has been away for too long.
        """
        bucket = self._buckets.get((connection, model)) or self._open(connection, model)
        if not bucket.slots.enter_at_once(tenant):
            with waiting("shared", bucket.counted):
                await bucket.slots.enter(tenant)
        if not bucket.rates.passes_at_once(expected):
            try:
                with waiting("rate", bucket.counted):
                    await bucket.rates.wait(expected)
            except BaseException:
                bucket.slots.release(tenant)
                raise
        return bucket.slots if tenant is None else Place(bucket.slots, tenant)

    def observe(self, connection: str, model: str, observation: Observation) -> None:
        """Takes in what the end of a call tells of its provider.

        Limits that a reply names hold for everybody where they are lower than the operator's: all know them with their next
        lease, within a second. After a 429, and while a day's allowance is used up, nobody calls.
        """
        bucket = self._buckets.get((connection, model)) or self._open(connection, model)
        bucket.slots.observe(observation)
        bucket.rates.observe(observation)

    def is_away(self, connection: str) -> bool:
        """Whether Redis said last that the connection's server is away."""
        outage = self._outages.get(connection)
        return outage is not None and outage.is_on

    def is_failing(self, connection: str, model: str) -> bool:
        """Return whether all calls of a model are known to end in errors of its server."""
        bucket = self._buckets.get((connection, model))
        return bucket is not None and bucket.slots.is_failing

    def is_full(self, connection: str, model: str) -> bool:
        """Return whether the process has all of its slots of a model in use."""
        bucket = self._buckets.get((connection, model))
        return bucket is not None and bucket.slots.is_full

    async def close(self) -> None:
        """Ends all waiting, which fails with ``LimiterUnavailableError``. Leaves Redis open: it is the caller's."""
        for bucket in self._buckets.values():
            await bucket.rates.close()
            await bucket.slots.close()

    @property
    def _epoch(self) -> str:
        return f"{self._prefix}:epoch"

    def _open(self, connection: str, model: str) -> "_Model":
        rates = self._rates_of(connection, model)
        key = f"{connection}/{model}"
        slots = SharedSlots(
            self._redis,
            Slots(
                model=key,
                key=f"{self._prefix}:slots:{key}",
                epoch=self._epoch,
                outage=f"{self._prefix}:outage:{connection}",
                holds=f"{self._prefix}:holds",
                most=rates.max_in_flight,
                owner=self._owner,
                deadline_seconds=self._deadline,
                outage_seconds=self._outage_seconds,
            ),
            self._outages.setdefault(connection, Outage()),
        )
        shared = SharedRates(self._redis, Bucket(connection, model, self._prefix), rates)
        bucket = self._buckets[connection, model] = _Model(shared, slots, calls_of(connection, model))
        return bucket


class _Model(NamedTuple):
    """What calls to a model pass, and where their waits are counted."""

    rates: SharedRates
    slots: SharedSlots
    counted: Calls
