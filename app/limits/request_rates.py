"""How often each API key may ask, over all API processes: a generic cell rate algorithm in Redis.

Of the requests of a minute a tenth may come at once, the others evenly; so no 60 seconds hold more than are allowed.
"""

import asyncio
import math

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app import clock

log = structlog.get_logger(__name__)

AT_ONCE = 0.1
"""Share of a minute's requests that may come at once; one, at least."""
TIMEOUT_SECONDS = 0.5
"""How soon Redis has to answer. A limit on asking is no reason to answer nobody, so without Redis all are let in."""
REST_SECONDS = 5.0
"""After so long a Redis that did not answer is asked again."""

_TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local each, ahead = tonumber(ARGV[1]), tonumber(ARGV[2])
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
if due - now > ahead then return due - now - ahead end
redis.call('SET', KEYS[1], string.format('%.0f', due + each), 'PX', math.ceil((due + each - now) / 1000))
return 0
"""


class RequestRates:
    """The limits of all keys; one a process."""

    def __init__(self, redis: Redis, *, prefix: str = "assay:requests") -> None:
        self._take = redis.register_script(_TAKE)
        self._prefix = prefix
        self._rests_until = float("-inf")

    async def wait_for(self, key_id: str, per_minute: int) -> float:
        """Seconds after which a key may ask again; 0 if it may now, which is then counted.

        Args:
            key_id: Which key.
            per_minute: How many requests it may make in 60 seconds.
        """
        if clock.monotonic() < self._rests_until:
            return 0.0
        at_once = max(1, math.floor(per_minute * AT_ONCE))
        each = 60e6 / max(1, per_minute - at_once)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                wait = await self._take(
                    keys=[f"{self._prefix}:{key_id}"],
                    args=[f"{each:.0f}", f"{each * (at_once - 1):.0f}"],
                )
        except (RedisError, OSError) as error:
            self._rests_until = clock.monotonic() + REST_SECONDS
            log.warning("requests not counted", error=type(error).__name__)
            return 0.0
        return float(wait) / 1e6
