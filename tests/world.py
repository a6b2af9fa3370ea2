"""The whole service in one process, on one event loop, with one clock that a test moves.

API, worker and sweeper are the real ones, and so are Postgres and Valkey. The provider is scripted. Queue messages go straight to the
worker. Time passes only where a test waits for something that takes time; see :mod:`tests.virtual_time`.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from unittest import mock
from uuid import UUID

import httpx2
import psycopg
import structlog
import uvicorn
import yaml
from psycopg.rows import dict_row
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine
from uvicorn.server import ServerState

import app.main
import app.telemetry.vital
import workers.context
import workers.sweeper
from app.db.execution import shards
from app.domain.keys.api_key import Scope
from app.main import create_app
from app.readers.pool import ReaderPool
from app.serve import BoundedHttp
from app.services.scheduling.dispatcher import Dispatcher
from app.settings import Settings
from tests.api.keys import PEPPER, KeyMaker, bearer
from tests.api.service import Json, job_body, verify
from tests.databases import libpq_url
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.virtual_time import (
    VirtualTimeLoop,
    postgres_in_virtual_time,
    python_in_virtual_time,
    redis_in_virtual_time,
    shorten_lives,
)

TEXT = "I stay at home. I read alone."
"""What a writer says unless a test scripts something else: two sentences."""
SCORE = "2"
"""How a judge scores each of them."""
LOOK_SECONDS = 0.25
"""How often :meth:`World.run` looks whether something is left to do."""
WALKED_SECONDS = 5.0
"""So much of a time that passes does so by each timer, whatever there is to do."""
MOMENT_SECONDS = 0.000_37
"""A time at which nothing else is due."""
PLACES = 8
"""Shards that the worker works on at a time."""


@dataclass(frozen=True)
class Reply:
    """A provider's reply.

    Attributes:
        text: What the model says; of an error, its message.
        status: The HTTP status; 0 for a connection that breaks before any answer.
        code: An error's code.
        error: An error within a good reply, as routers put it there.
        headers: Further headers.
        delay: Seconds that it takes.
        finish_reason: Why the model ended.
        tokens: Input and output tokens.
    """

    text: str = TEXT
    status: int = 200
    code: str | None = None
    error: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.05
    finish_reason: str = "stop"
    tokens: tuple[int, int] = (100, 10)

    def answer(self) -> Answer:
        if not self.status:
            return Answer(reset=True, delay=self.delay)
        read, written = self.tokens
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text},
            "finish_reason": self.finish_reason,
        } | ({"error": self.error} if self.error else {})
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        good = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted"}
        bad = {"error": {"message": self.text, "type": self.code or "error", "code": self.code}}
        body = good | {"choices": [choice], "usage": usage} if self.status < 400 else bad
        headers = {"content-type": "application/json", **self.headers}
        return Answer(self.status, json.dumps(body).encode(), headers, self.delay)


BROKEN = Reply(status=0)


@dataclass(frozen=True)
class Call:
    """A request that reached the provider.

    Attributes:
        stage: What it is for: ``generation``, ``judging`` and others.
        place: Where in the job, as its id names it.
        model: The model.
        prompt: The last message.
        body: All of it.
        at: When it came, in the world's time.
    """

    stage: str
    place: str
    model: str
    prompt: str
    body: Json
    at: datetime


class Provider:
    """A model provider that speaks OpenAI's format and replies as a test says.

    Attributes:
        calls: What it was asked, in order.
        away: Whether each connection breaks before any answer.
    """

    def __init__(self) -> None:
        self.away = False
        self.calls: list[Call] = []
        self._replies: dict[str, deque[Reply]] = {}
        self._usual: dict[str, Reply] = {}
        self._script: Callable[[Call], str | Reply | None] = lambda _: None
        self._server = StubProvider()
        self._server.script = self._answer

    @property
    def url(self) -> str:
        return f"{self._server.url}/v1"

    def reply(self, *replies: str | Reply, to: str = "generation", times: int = 1) -> None:
        """Replies to the next calls of a stage, in turn; after that the stage has its usual reply."""
        self._replies.setdefault(to, deque()).extend([_reply(each) for each in replies] * times)

    def reply_always(self, reply: str | Reply, to: str = "generation") -> None:
        """Replies so to all further calls of a stage."""
        self._usual[to] = _reply(reply)

    def reply_by(self, script: Callable[[Call], str | Reply | None]) -> None:
        """Replies as a function says; where it says nothing, as otherwise."""
        self._script = script

    def called(self, stage: str) -> list[Call]:
        """The calls of a stage."""
        return [call for call in self.calls if call.stage == stage]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        async with self._server:
            yield self

    def _answer(self, seen: Seen) -> Answer:
        if self.away:
            return BROKEN.answer()
        if seen.line.startswith("GET "):  # a probe
            return Answer()
        body = seen.json()
        # The id names the job, stage, place and attempt.
        _, stage, *place = seen.headers["x-client-request-id"].split("/")
        now = datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)
        prompt = body["messages"][-1]["content"]
        self.calls.append(call := Call(stage, "/".join(place[:-1]), body["model"], prompt, body, now))
        if (reply := self._script(call)) is not None:
            return _reply(reply).answer()
        if scripted := self._replies.get(stage):
            return scripted.popleft().answer()
        return self._usual.get(stage, Reply(SCORE if stage == "judging" else TEXT)).answer()


def _reply(reply: str | Reply) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply


Message = tuple[Callable[[Dispatcher, Any], Coroutine[Any, Any, None]], Any]


class LocalQueue:
    """Hands messages to the worker of the same process."""

    def __init__(self) -> None:
        self._messages = asyncio.Queue[Message]()

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        self._put(Dispatcher.run_shard, shard_ids)

    async def announce_finalize(self, job_id: str) -> None:
        self._put(Dispatcher.finalize, [job_id])

    async def announce_batches(self, batch_ids: Sequence[int]) -> None:
        self._put(Dispatcher.advance_batch, batch_ids)

    async def announce_files(self, file_ids: Sequence[UUID]) -> None:
        self._put(Dispatcher.delete_batch_file, list(map(str, file_ids)))

    async def length(self) -> int | None:
        return self._messages.qsize()

    def _put(self, begin: Callable[[Dispatcher, Any], Coroutine[Any, Any, None]], ids: Sequence[Any]) -> None:
        for id_ in ids:
            self._messages.put_nowait((begin, id_))

    async def serve(self, dispatcher: Dispatcher, stopping: asyncio.Event) -> None:
        """Handles one message after the other."""
        stop = asyncio.create_task(stopping.wait())
        while not stopping.is_set():
            message = asyncio.create_task(self._messages.get())
            await asyncio.wait({stop, message}, return_when=asyncio.FIRST_COMPLETED)
            if message.done():
                begin, id_ = message.result()
                await begin(dispatcher, id_)
            else:
                message.cancel()


class _LateReaders(ReaderPool):
    """Readers whose first process starts with the first file: few tests have one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._is_first = True

    async def start(self) -> None:
        if self._is_first:
            self._is_first = False
        else:
            await super().start()


class World:
    """A service that starts when it is first used.

    Attributes:
        provider: The scripted provider; its connection is ``acme``, its models are ``writer`` and ``judge``.
        http: A client of the API, which checks that each answer has its declared form.
        engine: The database, for use cases that no route has.
        redis: A client of Valkey.
    """

    def __init__(
        self,
        loop: VirtualTimeLoop,
        directory: Path,
        database_url: str,
        redis_url: str,
    ) -> None:
        self._loop = loop
        self._directory = directory
        self._database_url, self._redis_url = database_url, redis_url
        self._settings: Json = {}
        self._connection: Json = {}
        self._stack = AsyncExitStack()
        self._worker: AsyncExitStack | None = None
        self._queue = LocalQueue()
        self._aged = loop.time()
        self.provider = Provider()
        self.http: httpx2.AsyncClient
        self.engine: AsyncEngine
        self.redis: Redis

    # -- before it starts ---------------------------------------------------------------------------------------------

    def configure(self, *, connection: Json | None = None, **settings: Any) -> None:
        """Set fields of the provider's connection in the operator's file (limits, prices …), and settings."""
        assert not hasattr(self, "http"), "the world has started"
        self._connection |= connection or {}
        self._settings |= settings

    # -- time ---------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._loop.time(), UTC)

    async def advance(self, **time: float) -> None:
        """Let a time pass, given as for :class:`datetime.timedelta`.

        Everything happens that happens meanwhile, for the first seconds and while a worker holds a shard. Otherwise the clock then
        jumps, as on a machine that was suspended: what is due is done once, at the end.
        """
        await self._started()
        seconds = timedelta(**time).total_seconds()
        walked = min(seconds, WALKED_SECONDS)
        await asyncio.sleep(walked)
        if await self._is_held():
            await asyncio.sleep(seconds - walked)
        else:
            await asyncio.sleep(MOMENT_SECONDS)  # now all have looked who began to look before
            self._loop.stall(seconds - walked)
        await self._age_keys()
        await asyncio.sleep(LOOK_SECONDS)

    async def run(self, job: Json | None = None, **within: float) -> Json:
        """Let everything happen until no job has anything to do; return the job, by default the one submitted last, if any.

        Args:
            job: A job.
            within: Most time that may pass, as for :class:`datetime.timedelta`; by default an hour.
        """
        end = self.now + timedelta(**(within or {"hours": 1}))
        while busy := await self.rows(
            "SELECT id, status FROM jobs WHERE status IN ('queued', 'running', 'cancelling', 'finalizing')"
        ):
            assert self.now < end, f"after {end}: {busy}"
            await asyncio.sleep(LOOK_SECONDS)
        await self._age_keys()
        newest = [job] if job else await self.rows("SELECT id FROM jobs ORDER BY id DESC LIMIT 1")
        return await self.get(f"/v1/jobs/{newest[0]['id']}") if newest else {}

    async def _is_held(self) -> bool:
        return bool(
            await self.rows("SELECT FROM shards WHERE NOT done AND lease_expires_at > clock_timestamp()")
        )

    async def _age_keys(self) -> None:
        passed, self._aged = self._loop.time() - self._aged, self._loop.time()
        await shorten_lives(self.redis, passed)

    # -- requests -----------------------------------------------------------------------------------------------------

    async def submit(self, *, headers: dict[str, str] | None = None, **changes: Any) -> Json:
        """Submit a job of one persona, the essay, one model, one judge, one instruction and two runs, with changes."""
        self._loop.stall(0.001)  # ids sort by the millisecond
        usual: Json = {"models": ["acme/writer"], "judges": ["acme/judge"]}
        return await self.post("/v1/jobs", job_body(**usual | changes), headers)

    async def get(self, path: str, **parameters: Any) -> Json:
        await self._started()
        return _content(await self.http.get(path, params=parameters))

    async def post(self, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> Json:
        await self._started()
        return _content(await self.http.post(path, json=body or {}, headers=headers))

    async def patch(self, path: str, body: Json) -> Json:
        await self._started()
        return _content(await self.http.patch(path, json=body))

    async def new_key(self, *scopes: Scope, tenant: str = "default", **limits: Any) -> dict[str, str]:
        """The header of a new key; as long as there is none, requests need none."""
        await self._started()
        return bearer(KeyMaker(self._database_url).make(*scopes, tenant=tenant, **limits))

    async def rows(self, query: str, **values: Any) -> list[Json]:
        """What a query finds; nothing, for another statement."""
        await self._started()
        cursor = await self._database.execute(query.encode(), values)
        return [] if cursor.description is None else await cursor.fetchall()

    # -- the service --------------------------------------------------------------------------------------------------

    async def start_worker(self) -> None:
        """Start a worker, in place of one that was stopped."""
        self._worker = stack = AsyncExitStack()
        parts = await stack.enter_async_context(
            workers.context.running_worker(self._loaded, self._queue, PLACES)
        )
        stopping = asyncio.Event()
        serving = [asyncio.create_task(self._queue.serve(parts.dispatcher, stopping)) for _ in range(PLACES)]

        async def stop() -> None:
            stopping.set()
            parts.dispatcher.stop()
            await asyncio.gather(*serving)

        stack.push_async_callback(stop)

    async def stop_worker(self) -> None:
        """Stop the worker as a deployment does; its shards are given back."""
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await worker.aclose()

    async def claim_for_dead_worker(self, job: Json) -> None:
        """Have a worker that does no more hold the next shard of a job."""
        await self._started()
        async with self.engine.begin() as connection:
            claim = await shards.claim_next(connection, "a dead worker", self._loaded.lease_seconds)
        assert claim is not None
        assert claim.job_id == job["id"]

    async def _started(self) -> None:
        if not hasattr(self, "http"):
            await self._start()

    async def _start(self) -> None:
        enter = self._stack.enter_async_context
        await enter(self.provider.running())
        connection = {"kind": "openai", "base_url": self.provider.url, "models": ["writer", "judge"]}
        config = self._directory / "assay.yaml"
        config.write_text(yaml.safe_dump({"connections": {"acme": connection | self._connection}}))
        given: Json = {
            "database_url": self._database_url,
            "redis_url": self._redis_url,
            "config": config,
            "log_level": "WARNING",
            "key_pepper": PEPPER,
            "sweep_seconds": 5,  # the queue loses no message
            "tenant_changes_per_second": 1000,
            "webhook_hosts": "127.0.0.1",
        }
        has_worker = self._settings.pop("worker", True)
        self._loaded = Settings(**given | self._settings)
        await enter(self._serving())
        self.redis, self.engine = self._app.state.services.redis, self._app.state.services.every_tenant
        self._database = await psycopg.AsyncConnection.connect(
            libpq_url(self._database_url), autocommit=True, row_factory=dict_row
        )
        self._stack.push_async_callback(self._database.close)
        await enter(self._sweeping())
        if has_worker:
            await self.start_worker()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        self._app = create_app(self._loaded, self._queue)
        config = uvicorn.Config(self._app, log_config=None, access_log=False)
        config.load()
        async with self._app.router.lifespan_context(self._app):
            state = ServerState()
            server = await self._loop.create_server(
                lambda: BoundedHttp(config=config, server_state=state, app_state={}), "127.0.0.1", 0
            )
            url = "http://{}:{}".format(*server.sockets[0].getsockname())
            async with httpx2.AsyncClient(
                base_url=url, timeout=None, trust_env=False, event_hooks={"response": [_verify]}
            ) as self.http:
                yield
            server.close()
            for connection in list(state.connections):
                connection.shutdown()
            await server.wait_closed()

    @asynccontextmanager
    async def _sweeping(self) -> AsyncIterator[None]:
        stopped = asyncio.Event()
        sweeping = asyncio.create_task(workers.sweeper.sweep_until(stopped, self._loaded, self._queue))
        yield
        stopped.set()
        await sweeping

    async def close(self) -> None:
        """End everything."""
        await self.stop_worker()
        await self._stack.aclose()


async def _verify(response: httpx2.Response) -> None:
    await response.aread()
    verify(response)


def _content(response: httpx2.Response) -> Json:
    assert response.status_code < 400, response.text
    content: Json = response.json() if response.content else {}
    return content


@asynccontextmanager
async def new_world(directory: Path, database_url: str, redis_url: str, clock: Path) -> AsyncIterator[World]:
    """A world on a database of its own, which reads its time from a file, and an empty Valkey."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    crashes: list[None] = []
    with ExitStack() as patches:
        patches.enter_context(python_in_virtual_time(loop))
        patches.enter_context(postgres_in_virtual_time(loop, clock))
        patches.enter_context(redis_in_virtual_time())
        patches.callback(structlog.configure, **structlog.get_config())  # the service sets its own level
        for place, name, replacement in [
            (app.main, "ReaderPool", _LateReaders),
            (app.main, "import_in_background", lambda *_, **__: None),
            (app.telemetry.vital, "end_process", lambda: crashes.append(None)),
        ]:
            patches.enter_context(mock.patch.object(place, name, replacement))
        world = World(loop, directory, database_url, redis_url)
        try:
            yield world
        finally:
            await world.close()
        assert not crashes, "a vital task ended; see the log"
