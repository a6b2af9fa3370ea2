"""The Celery worker: ``celery -A workers.celery_app worker --pool threads``."""

import contextlib
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import celery.apps.worker as program
import structlog
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down

from app.bootstrap import configure_logging, told_start
from app.queue.celery_app import ADVANCE_BATCH, DELETE_BATCH_FILE, FINALIZE_JOB, RUN_SHARD, make_celery
from app.queue.sender import CeleryQueue
from app.services.scheduling.dispatcher import Dispatcher
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


def _take(name: str, begin: Callable[[Dispatcher, Any], Coroutine[Any, Any, None]]) -> None:
    """Has the dispatcher told of a kind of messages."""

    @app.task(name=name)
    def take(id_: int | str) -> None:
        with without_words():
            context.take(begin, id_)


_take(RUN_SHARD, Dispatcher.run_shard)
_take(FINALIZE_JOB, Dispatcher.finalize)
_take(ADVANCE_BATCH, Dispatcher.advance_batch)
_take(DELETE_BATCH_FILE, Dispatcher.delete_batch_file)


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
