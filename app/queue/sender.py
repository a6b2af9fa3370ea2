"""Sends the messages that wake workers."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

import structlog
from celery import Celery
from kombu.exceptions import KombuError

from app.queue.celery_app import ADVANCE_BATCH, DELETE_BATCH_FILE, FINALIZE_JOB, QUEUE, RUN_SHARD
from app.redis_server import reason

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 2.0
"""How long a sender waits for a Redis that does not answer; the sweeper announces what was not announced."""

SENDERS = 4

Answer = TypeVar("Answer")


class CeleryQueue:
    """The queue, through Celery. Sending blocks for about a millisecond a message, so it happens in threads.

    They are its own: while Redis is frozen they hang for as long as its socket's timeout, and nothing else may hang with them.
    """

    def __init__(self, celery: Celery) -> None:
        self._celery = celery
        lost = celery.connection_for_write()  # which opens nothing yet
        self._errors = (KombuError, OSError, *lost.connection_errors, *lost.channel_errors)
        self._threads = ThreadPoolExecutor(SENDERS, thread_name_prefix="queue")

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        """Tells the workers that these shards can be claimed; see :class:`app.ports.Queue`."""
        if shard_ids:
            await self._retry_until_available(lambda: self._send(RUN_SHARD, shard_ids))

    async def announce_finalize(self, job_id: str) -> None:
        """Tells a worker that a job can be finalized; see :class:`app.ports.Queue`."""
        await self._retry_until_available(lambda: self._send(FINALIZE_JOB, [job_id]))

    async def announce_batches(self, batch_ids: Sequence[int]) -> None:
        """Tells the workers that these batches are to be looked after; see :class:`app.ports.Queue`."""
        if batch_ids:
            await self._retry_until_available(lambda: self._send(ADVANCE_BATCH, batch_ids))

    async def announce_files(self, file_ids: Sequence[UUID]) -> None:
        """Tells the workers that these files are to be deleted; see :class:`app.ports.Queue`."""
        if file_ids:
            await self._retry_until_available(
                lambda: self._send(DELETE_BATCH_FILE, [str(id_) for id_ in file_ids])
            )

    async def length(self) -> int | None:
        """Return the number of waiting messages about shards; see :class:`app.ports.Queue`."""
        return await self._retry_until_available(self._length)

    async def _retry_until_available(self, act: Callable[[], Answer]) -> Answer | None:
        """What an act answers; none if Redis does not answer it in time."""
        acting = asyncio.get_running_loop().run_in_executor(self._threads, act)
        done, _ = await asyncio.wait({acting}, timeout=TIMEOUT_SECONDS)
        if done:
            return acting.result()
        log.warning("queue does not answer; the sweeper will announce it again")
        acting.cancel()  # if it has not begun, it never will
        return None

    def _length(self) -> int | None:
        try:
            with self._celery.pool.acquire(block=True) as connection:
                channel = connection.default_channel
                return int(channel.queue_declare(QUEUE, passive=False, durable=True).message_count)
        except self._errors as error:
            log.warning("queue away", reason=reason(error))
            return None

    def _send(self, task: str, payloads: Sequence[int | str]) -> None:
        try:
            with self._celery.producer_pool.acquire(block=True) as producer:
                for payload in payloads:
                    self._celery.send_task(task, args=(payload,), producer=producer, retry=False)
        except self._errors as error:
            log.warning("queue away; the sweeper will announce it again", task=task, reason=reason(error))
