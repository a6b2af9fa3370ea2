"""Sends the messages that wake workers."""

import asyncio
from collections.abc import Sequence

import structlog
from celery import Celery
from kombu.exceptions import KombuError

from app.queue.celery_app import FINALIZE_JOB, QUEUE, RUN_SHARD

log = structlog.get_logger(__name__)


class CeleryQueue:
    """The queue, through Celery. Sending blocks for about a millisecond a message, so it happens in a thread."""

    def __init__(self, celery: Celery) -> None:
        self._celery = celery

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        """Tells the workers that these shards can be claimed; see :class:`app.ports.Queue`."""
        if shard_ids:
            await asyncio.to_thread(self._send, RUN_SHARD, shard_ids)

    async def announce_finalize(self, job_id: str) -> None:
        """Tells a worker that a job can be finalized; see :class:`app.ports.Queue`."""
        await asyncio.to_thread(self._send, FINALIZE_JOB, [job_id])

    async def length(self) -> int | None:
        """How many messages wait for a worker; see :class:`app.ports.Queue`."""
        return await asyncio.to_thread(self._length)

    def _length(self) -> int | None:
        try:
            with self._celery.connection_for_write() as connection:
                channel = connection.default_channel
                return int(channel.queue_declare(QUEUE, passive=False, durable=True).message_count)
        except (KombuError, OSError) as error:
            log.warning("queue away", error=str(error))
            return None

    def _send(self, task: str, payloads: Sequence[int | str]) -> None:
        try:
            with self._celery.producer_pool.acquire(block=True) as producer:
                for payload in payloads:
                    self._celery.send_task(task, args=(payload,), producer=producer, retry=False)
        except (KombuError, OSError) as error:
            log.warning("queue away; the sweeper will announce it again", task=task, error=str(error))
