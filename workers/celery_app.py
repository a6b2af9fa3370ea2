"""The Celery worker: ``celery -A workers.celery_app worker --pool threads``."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import celery.apps.worker as program
import structlog
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down

from app.bootstrap import configure_logging, told_start
from app.queue.celery_app import ADVANCE_BATCH, DELETE_BATCH_FILE, FINALIZE_JOB, RUN_SHARD, make_celery
from app.queue.sender import CeleryQueue
from app.settings import load_settings
from workers.context import WorkerContext

log = structlog.get_logger(__name__)

with told_start():
    settings = load_settings()
    configure_logging(settings)
    app = make_celery(settings.require_redis())
# What Celery says of a signal is no line of the log, and a signal's handler must not wait for the log; the context tells it.
program.safe_say = lambda *_: None
context = WorkerContext(settings, CeleryQueue(app))


class TaskFailedError(Exception):
    """A task has failed; the message names the kind of error only."""


@contextlib.contextmanager
def without_words() -> Iterator[None]:
    """Logs an error that escapes a task, and gives Celery, which would write down the driver's words, only its kind.

    Raises:
        TaskFailedError: In place of any error.
    """
    try:
        yield
    except Exception as error:
        log.exception("task failed")
        raise TaskFailedError(type(error).__name__) from None


@app.task(name=RUN_SHARD)
def run_shard(shard_id: int) -> None:
    """Runs one shard."""
    with without_words():
        context.run_shard(shard_id)


@app.task(name=ADVANCE_BATCH)
def advance_batch(batch_id: int) -> None:
    """Looks after one batch."""
    with without_words():
        context.advance_batch(batch_id)


@app.task(name=DELETE_BATCH_FILE)
def delete_batch_file(file_id: str) -> None:
    """Deletes one file of a batch at its provider."""
    with without_words():
        context.delete_batch_file(UUID(file_id))


@app.task(name=FINALIZE_JOB)
def finalize_job(job_id: str) -> None:
    """Finalizes one job."""
    with without_words():
        context.finalize_job(job_id)


@setup_logging.connect
def _keep_logging(**_: Any) -> None:
    """Keeps Celery from configuring logging: its lines go where ours go, in the same form."""


@worker_init.connect
def _start(sender: Any, **_: Any) -> None:
    os.nice(settings.worker_nice)
    try:
        with told_start():
            context.start(places=sender.concurrency)
    except Exception as error:
        # Celery goes on after an exception in a signal, and such a worker would swallow every message.
        log.exception("the worker can't start")
        raise SystemExit(1) from error


@worker_ready.connect
def _warm_up(**_: Any) -> None:
    context.warm_up()


@worker_shutting_down.connect
def _stop(**_: Any) -> None:
    context.stop()


@worker_shutdown.connect
def _close(**_: Any) -> None:
    context.close()
