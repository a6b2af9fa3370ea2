"""The sweeper: ``python -m workers.sweeper``. Every few seconds it wakes work that was announced to nobody.

Beside that it runs schedules, delivers messages to webhooks, and removes the jobs that are older than the operator keeps them.

A process of its own rather than a periodic Celery task, because such a task would wait in the very queue whose loss
it has to notice, behind the shards that fill the workers' slots.
"""

import asyncio
import contextlib
import secrets
import signal
from functools import cache

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bootstrap import configure_logging, load_key_ring, load_operator_connections, told_start
from app.db.engine import connect
from app.db.health import is_away
from app.db.reasons import reason
from app.llm.models.prices import GenaiPriceBook
from app.ports import Queue
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.services.jobs.retention import removing
from app.services.jobs.submit import SubmissionDependencies
from app.services.providers.catalog import load_catalog
from app.services.providers.connection_book import ConnectionBook, reseal
from app.services.scheduling.sweep import sweep
from app.services.watching.process import running_schedules
from app.services.webhooks.deliver import delivering
from app.services.webhooks.secrets import reseal_secrets
from app.settings import PEPPER_BYTES, Settings, load_settings
from app.telemetry.board import MetricsBoard
from app.telemetry.metrics import ANNOUNCED_AGAIN
from app.vault.secret_cipher import SecretCipher
from app.webhooks.sender import HttpWebhookSender
from workers.start import heartbeat, refuse_unusable_database

log = structlog.get_logger(__name__)

REDIS_SECONDS = 5.0
"""How long it waits for an answer of Redis."""


async def run(settings: Settings) -> None:
    """Sweeps until a signal ends the process."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await sweep_until(stopped, settings, CeleryQueue(make_celery(settings.require_redis())))


async def sweep_until(stopped: asyncio.Event, settings: Settings, queue: Queue) -> None:
    """Do the sweeper's work until an event is set."""
    engine = connect(
        settings.require_database_url(),
        pool_size=1,
        application_name="assay sweeper",
        pooler=settings.database_pooler,
    )
    redis = settings.require_redis().client(REDIS_SECONDS)
    ring = load_key_ring(settings)
    await refuse_unusable_database(engine, settings)
    await _reseal(engine, ring)
    sender = HttpWebhookSender(settings.for_all(settings.webhook_guard))
    async with (
        MetricsBoard(redis, "sweeper").showing(),
        removing(engine, settings.keep_days, settings.reply_days),
        delivering(engine, sender, ring),
        running_schedules(engine, cache(lambda: _submission(settings, engine, queue, ring))),
        heartbeat(settings),
    ):
        await _keep_sweeping(stopped, engine, queue, settings)
    await sender.close()
    await redis.aclose()
    await engine.dispose()


def _submission(
    settings: Settings, engine: AsyncEngine, queue: Queue, ring: SecretCipher
) -> SubmissionDependencies:
    """What submitting schedules' jobs takes; made for the first of them, as most services have none."""
    operator = load_operator_connections(settings)
    pepper = settings.read_key_pepper() or secrets.token_bytes(PEPPER_BYTES)
    return SubmissionDependencies(
        engine=engine,
        catalog=load_catalog(operator, pepper, reply_days=settings.reply_days),
        queue=queue,
        window=settings.shard_window,
        max_planned_calls=settings.max_planned_calls,
        confirm_calls_above=settings.confirm_calls_above,
        max_unfinished_jobs=settings.max_unfinished_jobs,
        prices=GenaiPriceBook(operator),
        book=ConnectionBook(engine, operator, settings.for_all(settings.connection_guard), ring),
    )


async def _reseal(engine: AsyncEngine, ring: SecretCipher) -> None:
    """Has what is kept secret encrypted by the first of the keys that are set; one of the processes has to."""
    try:
        connections, hooks = await reseal(engine, ring), await reseal_secrets(engine, ring)
        if connections or hooks:
            log.info("keys encrypted anew", connections=connections, webhooks=hooks)
    except Exception as error:
        if not is_away(error):
            raise
        log.warning("keys not encrypted anew; the next start tries again", reason=reason(error))


async def _keep_sweeping(
    stopped: asyncio.Event, engine: AsyncEngine, queue: Queue, settings: Settings
) -> None:
    while not stopped.is_set():
        try:
            swept = await sweep(engine, queue, settings.shard_window, settings.batch_calls)
            if swept.shards or swept.jobs:
                log.info("announced again", shards=swept.shards, jobs=swept.jobs)
                ANNOUNCED_AGAIN.inc(swept.shards)
        except Exception as error:
            if not is_away(error):
                log.exception("sweep failed; trying again")
            else:
                log.warning("sweep failed; trying again", reason=reason(error))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.sweep_seconds):
                await stopped.wait()


if __name__ == "__main__":
    with told_start():
        loaded = load_settings()
        configure_logging(loaded)
        asyncio.run(run(loaded))
