"""Where processes show the API their metrics, and workers that they are ready: a hash and a sorted set in Redis.

Workers are many, come and go, and run where no scraper finds them; the API is where one looks. What is shown counts from the
process's start and has its name as a label, so a process that ends takes its series along and no counter falls.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.redis_server import reason
from app.telemetry.exposition import snapshot
from app.telemetry.metrics import LOOP_LAG, REGISTRY
from app.telemetry.states import OK, StateLog
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

SHOWN_EVERY_SECONDS = 5.0
FORGOTTEN_AFTER_SECONDS = 30.0
SILENT_SECONDS = 15.0
"""Age of a process's last sign from which it counts as silent."""
_LAG_STEP_SECONDS = 0.25


class MetricsBoard:
    """The board, as one process uses it.

    Args:
        redis: Where it is.
        role: What the process is: ``worker``, ``sweeper`` or ``api``.
        trouble: Says what keeps the process from its work; ``None`` if nothing does.
        key: Of the hash with the metrics.
        ready_key: Of the sorted set with the workers that are ready, by the time at which they said so last.
    """

    def __init__(
        self,
        redis: Redis,
        role: str,
        *,
        key: str = "assay:metrics",
        ready_key: str = "assay:ready",
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._redis = redis
        self._trouble = trouble
        self._key = key
        self._ready_key = ready_key
        self._is_ready = False
        self._longest_lag = 0.0
        self._states = StateLog()
        self.process = f"{role}@{socket.gethostname()}:{os.getpid()}"

    async def show(self) -> None:
        """Shows this process's metrics as they are now.

        Raises:
            RedisError: If Redis can't be reached.
        """
        LOOP_LAG.set(self._longest_lag)
        self._longest_lag = 0.0
        entry = json.dumps([await self._now(), snapshot(REGISTRY), self._trouble()])
        await self._redis.hset(self._key, self.process, entry)
        await self._show_ready()

    async def set_ready(self, is_ready: bool) -> None:
        """Shows at once, and from now on, whether this process would work on a job; Redis may be away meanwhile."""
        self._is_ready = is_ready
        with contextlib.suppress(RedisError, OSError):
            if is_ready:
                await self._show_ready()
            else:
                await self._redis.zrem(self._ready_key, self.process)

    async def ready(self) -> int:
        """How many processes have shown lately that they would work on a job.

        Raises:
            RedisError: If Redis can't be reached.
        """
        since = await self._now() - FORGOTTEN_AFTER_SECONDS
        return int(await self._redis.zcount(self._ready_key, since, "+inf"))

    async def troubles(self) -> dict[str, str]:
        """Return what is wrong with which processes, by role and process id, and with ``sweeper`` if none runs.

        Raises:
            RedisError: If Redis can't be reached.
        """
        now, found, sweepers = await self._now(), dict[str, str](), 0
        for name, entry in (await self._redis.hgetall(self._key)).items():
            process = name.decode() if isinstance(name, bytes) else name
            role, number = process.partition("@")[0], process.rpartition(":")[2]
            at, _, trouble = json.loads(entry)
            age = now - at
            sweepers += role == "sweeper" and age <= FORGOTTEN_AFTER_SECONDS
            if SILENT_SECONDS < age <= FORGOTTEN_AFTER_SECONDS:
                found[f"{role} {number}"] = f"silent for {age:.0f} s"
            elif trouble and age <= SILENT_SECONDS:
                found[f"{role} {number}"] = trouble
        return found if sweepers else found | {"sweeper": "none is running"}

    async def snapshots(self) -> dict[str, str]:
        """The snapshots of all processes that showed theirs lately; others are forgotten.

        Raises:
            OSError: If Redis can't be reached.
        """
        try:
            return await self._read()
        except RedisError as error:
            raise ConnectionError(type(error).__name__) from error

    async def _read(self) -> dict[str, str]:
        now = await self._now()
        current: dict[str, str] = {}
        for name, entry in (await self._redis.hgetall(self._key)).items():
            process = name.decode() if isinstance(name, bytes) else name
            at, encoded, _ = json.loads(entry)
            if now - at <= FORGOTTEN_AFTER_SECONDS:
                current[process] = encoded
            else:
                await self._redis.hdel(self._key, process)
        return current

    async def _show_ready(self) -> None:
        if self._is_ready:
            now = await self._now()
            await self._redis.zadd(self._ready_key, {self.process: now})
            await self._redis.zremrangebyscore(self._ready_key, 0, now - FORGOTTEN_AFTER_SECONDS)

    @contextlib.asynccontextmanager
    async def showing(self) -> AsyncIterator[None]:
        """Shows this process's metrics every few seconds, the loop's lag among them, and logs why Redis does not take them."""
        try:
            async with vital_tasks(metrics=self._keep_showing(), loop_lag=self._measure_lag()):
                yield
        finally:
            with contextlib.suppress(RedisError, OSError):
                await self._redis.hdel(self._key, self.process)

    async def _keep_showing(self) -> None:
        while True:
            try:
                await self.show()
                self._states.note({"redis": OK})
            except (RedisError, OSError) as error:
                self._states.note({"redis": reason(error)})
            except Exception:
                log.exception("metrics not shown; trying again")
            await asyncio.sleep(SHOWN_EVERY_SECONDS)

    async def _now(self) -> float:
        seconds, microseconds = await self._redis.time()
        return float(seconds + microseconds / 1e6)

    async def _measure_lag(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            before = clock()
            await asyncio.sleep(_LAG_STEP_SECONDS)
            self._longest_lag = max(self._longest_lag, clock() - before - _LAG_STEP_SECONDS)
