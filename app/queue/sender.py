"""Sends the messages that wake workers."""

import asyncio
from collections.abc import Sequence

import structlog
from celery import Celery
from kombu.exceptions import KombuError

from app.queue.celery_app import FINALIZE_JOB, RUN_SHARD

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

    def _send(self, task: str, payloads: Sequence[int | str]) -> None:
        try:
            with self._celery.producer_pool.acquire(block=True) as producer:
                for payload in payloads:
                    self._celery.send_task(task, args=(payload,), producer=producer, retry=False)
        except (KombuError, OSError) as error:
            log.warning("queue away; the sweeper will announce it again", task=task, error=str(error))
