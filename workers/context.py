"""What one worker process has: an event loop on a thread of its own, and on it everything that shards need.

Celery's threads only wait for shards; every call of every shard of the process runs on the one loop, over the same connections.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, NamedTuple

import structlog
import uvloop

from app.bootstrap import (
    import_in_background,
    keep_what_is_imported,
    let_threads_give_way,
    load_key_ring,
    load_operator_connections,
)
from app.db.engine import connect
from app.db.execution.result_rows import ResultWriter
from app.db.health import WORKER
from app.instruments.rules import RULES
from app.limits.redis_limiter import RedisRateLimiter
from app.llm.batches.gateway import BatchGateway
from app.llm.connections.provider_names import provider_of
from app.llm.gateway import ADAPTERS, Gateway, adapters
from app.llm.models.prices import PRICE_LISTS, GenaiPriceBook, price_lists
from app.ports import Queue
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.cache_lookup import ReplyDesk
from app.services.execution.first_calls import FirstCalls
from app.services.execution.leases import LeaseKeeper
from app.services.execution.model_caller import ModelCaller
from app.services.execution.response_cache import SharedReplies
from app.services.execution.result_writer import BatchWriter
from app.services.execution.shard_work import Batching, ShardDependencies
from app.services.execution.suspect_replies import LateSuspects
from app.services.job_context import JobContexts
from app.services.providers.call_rules import CallRules
from app.services.providers.connection_book import ConnectionBook
from app.services.scheduling.dispatcher import Dispatcher
from app.services.scheduling.outages import resuming
from app.settings import Settings
from app.telemetry import tracing
from app.telemetry.board import MetricsBoard
from app.telemetry.vital import vital_tasks
from persona_assay.version import VERSION
from workers.start import heartbeat, refuse_unusable_database

log = structlog.get_logger(__name__)

CLOSING_SECONDS = 60.0
REDIS_SECONDS = 5.0
"""How long a worker waits for an answer of Redis."""
UNASKED_SECONDS = 30.0
"""After so long a worker imports the SDKs of formats that no connection of the operator has: a tenant's may."""


class WorkerParts(NamedTuple):
    """What a running worker consists of.

    Attributes:
        dispatcher: Takes the messages of the queue.
        board: Shows the worker's metrics, and that it is ready.
        imports: Modules that the first calls need.
    """

    dispatcher: Dispatcher
    board: MetricsBoard
    imports: tuple[str, ...]


class WorkerContext:
    """Built once a process, before Celery takes its first task."""

    def __init__(self, settings: Settings, queue: Queue) -> None:
        self._settings = settings
        self._queue = queue
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="calls", daemon=True)
        self._stack = contextlib.AsyncExitStack()
        self._parts: WorkerParts | None = None
        self._warm = threading.Event()

    def start(self, places: int) -> None:
        """Starts the loop and everything on it.

        Args:
            places: Shards that Celery lets this process work on at a time.

        Raises:
            Exception: Whatever keeps the worker from starting, such as an unusable configuration.
        """
        let_threads_give_way()
        self._thread.start()
        work = running_worker(self._settings, self._queue, places)
        self._parts = self._run(self._stack.enter_async_context(work)).result()

    def warm_up(self) -> None:
        """Imports what every shard needs, while the worker already answers to its queue; shards wait for it, and so does `/readyz`.

        Imported by the first call, it would make the loop stand still, on a busy machine past the shards' leases. The SDKs take
        longer than all the rest: those of the operator's connections are imported now, others with a shard's first call, on a thread. Price
        lists are imported for those that may have a price.
        """
        modules = ("app.services.results.finalize", "scipy.special")
        import_in_background(*modules, *self._started().imports, then=self._warmed)

    def _warmed(self) -> None:
        keep_what_is_imported()
        self._warm.set()
        self._run(self._started().board.set_ready(is_ready=True))
        import_in_background(*ADAPTERS, PRICE_LISTS, after=UNASKED_SECONDS, then=keep_what_is_imported)

    def stop(self) -> None:
        """Stops taking up calls; those on the wire are awaited for a while and kept, and the shards given back."""
        if self._parts is not None:
            self._run(self._parts.board.set_ready(is_ready=False))
            self._loop.call_soon_threadsafe(self._leave, self._parts.dispatcher)

    def _leave(self, dispatcher: Dispatcher) -> None:
        dispatcher.stop()
        self._loop.call_later(self._settings.shutdown_seconds, dispatcher.abandon)

    def close(self) -> None:
        """Wait for shards beside the places, as for those that Celery knows of; write what is left and close all connections."""
        self._run(self._stack.aclose()).result(self._settings.shutdown_seconds + CLOSING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING_SECONDS)

    def take(self, begin: Callable[[Dispatcher, Any], Coroutine[Any, Any, None]], id_: int | str) -> None:
        """Hands a message to the dispatcher; blocks the calling thread until the place that it takes, if any, is free again."""
        self._warm.wait()
        self._run(begin(self._started().dispatcher, id_)).result()

    def _started(self) -> WorkerParts:
        if self._parts is None:
            raise RuntimeError("the worker has not been started")
        return self._parts

    def _run(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)


@contextlib.asynccontextmanager
async def running_worker(settings: Settings, queue: Queue, places: int) -> AsyncIterator[WorkerParts]:
    """Run everything that shards need on the current event loop.

    Args:
        settings: The settings.
        queue: Where it announces work.
        places: Shards that it works on at a time.

    Raises:
        Exception: Whatever keeps the worker from starting, such as an unusable configuration.
    """
    connections = load_operator_connections(settings)
    imports = (*adapters(connections), *price_lists(connections))
    url = settings.require_database_url()
    pooler = settings.database_pooler
    engine = connect(url, pool_size=8, max_overflow=settings.slots, application_name=WORKER, pooler=pooler)
    await refuse_unusable_database(engine, settings)
    # Of their own: neither results nor leases wait behind shards for a connection.
    vital = connect(
        url, pool_size=2, max_overflow=1, application_name=f"{WORKER}, results and leases", pooler=pooler
    )
    book = ConnectionBook(
        engine, connections, settings.for_all(settings.connection_guard), load_key_ring(settings)
    )
    gateway = Gateway(connections, settings.transport, book.fetch)
    batch_gateway = BatchGateway(connections, book.fetch)

    def renew(connection: str) -> None:
        gateway.renew(connection)
        batch_gateway.renew(connection)

    prices = GenaiPriceBook(connections)
    redis = settings.require_redis().client(REDIS_SECONDS)
    limiter = RedisRateLimiter(
        redis,
        connections.limits,
        deadline_seconds=settings.call_deadline_seconds,
        outage_seconds=settings.outage_seconds,
    )
    await limiter.begin()
    writer = BatchWriter(ResultWriter(vital), settings.max_unwritten)
    leases = LeaseKeeper(vital, settings.lease_seconds)
    budgets = BudgetKeeper(engine)
    desk = ReplyDesk(engine)
    first_calls = FirstCalls(engine)
    caller = ModelCaller(
        chat=gateway,
        limiter=limiter,
        prices=prices,
        writer=writer,
        attempts=settings.call_attempts,
        deadline_seconds=settings.call_deadline_seconds,
        in_flight=lambda *_: settings.max_in_flight,
        budgets=budgets,
        first_calls=first_calls,
    )
    board = MetricsBoard(redis, "worker", trouble=lambda: writer.trouble)
    if settings.traces:
        tracing.start("assay-worker", VERSION, lambda name: provider_of(connections.get(name)))
    late_suspects = LateSuspects(engine, queue, settings.shard_window)
    async with writer.running(), leases.running(), budgets.running(), desk.running(), board.showing():
        deps = ShardDependencies(
            engine=engine,
            writer=writer,
            caller=caller,
            replies=SharedReplies(desk=desk, caller=caller, requests=gateway, prices=prices, writer=writer),
            first_calls=first_calls,
            batching=Batching(batch_gateway, prices, settings.batch_poll_seconds, settings.batch_calls),
            leases=leases,
            late_suspects=late_suspects,
            contexts=JobContexts(engine),
            queue=queue,
            finalize=queue.announce_finalize,
            rules=RULES,
            call_rules=CallRules(book, prices),
            owner=f"{socket.gethostname()}:{os.getpid()}",
            lease_seconds=settings.lease_seconds,
            window=settings.shard_window,
        )
        dispatcher = Dispatcher(deps, places)
        async with (
            dispatcher.running(),
            book.keeping(renew),
            resuming(engine, queue, gateway, settings.shard_window),
            vital_tasks(late_suspects=late_suspects.run()),
            heartbeat(settings),
        ):
            yield WorkerParts(dispatcher, board, imports)
    await gateway.close()
    await batch_gateway.close()
    await limiter.close()
    await redis.aclose()
    await engine.dispose()
    await vital.dispose()
    await asyncio.to_thread(tracing.stop)
