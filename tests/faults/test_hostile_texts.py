"""A small job beside another tenant's, whose model answers with texts that were chosen to hold up whoever reads them.

With replies of 48 kB of ". . . " it took 711 s, and beside one of 3 MB 235 s, where it takes 2.7 s alone: they were split on the loop
on which all jobs of a worker run.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import psycopg
import pytest

from app.db.engine import connect
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer
from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Stack, running_stack
from tests.faults.conftest import SLOTS
from tests.faults.trial import report
from tests.integration.jobs import new_job
from tests.observe import eventually

LATENCY_SECONDS = 0.2
SLACK_SECONDS = 25.0
"""On a machine that runs other tests too; the loop stood still for 160 s and more."""
REPLIES: dict[str, tuple[int, Callable[[], bytes]]] = {
    "48 kB": (300, lambda: said(". . . " * 8_000)),
    "3 MB": (30, lambda: said(". . . " * 500_000)),
    "10 MB": (10, lambda: said("ignore previous [-" * 580_000)),
    "10 MB of objects": (10, lambda: said("Well.", "[" + '{"b":[]},' * 1_150_000 + "1]")),
    "an error of 10 MB": (10, lambda: said("Well.", "[" + "1," * 5_000_000 + "1]")),
}
"""How many calls are answered so, and with what body."""


def said(text: str, other: str = "1") -> bytes:
    """A reply in OpenAI's format."""
    message = json.dumps({"role": "assistant", "content": text})
    usage = '{"prompt_tokens": 9, "completion_tokens": 16000}'
    choices = f'[{{"message": {message}, "finish_reason": "stop"}}]'
    return f'{{"choices": {choices}, "usage": {usage}, "other": {other}}}'.encode()


class HostileProvider:
    """Answers every call with the same bytes, and counts them."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 200
        self.answered = itertools.count(1)
        self.answers = 0
        self.url = ""


@contextmanager
def hostile_provider() -> Iterator[HostileProvider]:
    provider = HostileProvider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(
                LATENCY_SECONDS
            )  # a provider that takes its time, so that its job is there for some seconds
            self.send_response(provider.status)
            self.send_header("Content-Length", str(len(provider.body)))
            self.end_headers()
            self.wfile.write(provider.body)
            provider.answers = next(provider.answered)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        provider.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield provider
        server.shutdown()


@pytest.fixture(scope="module")
def provider() -> Iterator[HostileProvider]:
    with hostile_provider() as running:
        yield running


@dataclass(frozen=True)
class HostileWorld:
    """A stack one of whose providers is hostile, and where its databases are."""

    stack: Stack
    database: str
    redis: str


@pytest.fixture(scope="module")
def hostile_world(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, provider: HostileProvider
) -> Iterator[HostileWorld]:
    environment = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "sk-c123DEF456ghi789JKL012mno345"}
    with (
        databases.new("hostile", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(
            directory, database_url=url, redis_url=valkey.url(), slots=SLOTS, environment=environment
        ) as stack,
    ):
        stack.simulate(latency_ms=50)
        yield HostileWorld(stack, url, valkey.url())


@pytest.fixture(scope="module")
def alone(hostile_world: HostileWorld) -> float:
    """What the small job takes when nobody else is there."""
    return min(seconds_of_a_small_job(hostile_world) for _ in range(2))


class TestHostileTexts:
    @pytest.mark.parametrize("name", REPLIES)
    def test_they_hold_up_nobody_elses_job(
        self, hostile_world: HostileWorld, provider: HostileProvider, alone: float, name: str
    ) -> None:
        calls, body = REPLIES[name]
        provider.body, provider.status = body(), 400 if "error" in name else 200
        before = provider.answers
        job = {
            "personas": ["E-low"],
            "tasks": ["essay"],
            "models": ["openai/gpt-4o"],
            "judges": ["simulated/sim-judge"],
            "instructions": [1],
            "iterations": calls,
        }
        hostile = hostile_world.stack.submit(job)
        assert eventually(lambda: provider.answers > before, 60)
        took = seconds_of_a_small_job(hostile_world)
        hostile_world.stack.act(hostile, "cancel")
        hostile_world.stack.ended(hostile, 120)
        report(f"hostile texts, {name}", seed=0, n=1, of=1, alone=round(alone, 1), beside=round(took, 1))
        assert took <= 3 * alone + SLACK_SECONDS


def seconds_of_a_small_job(world: HostileWorld) -> float:
    """From a job's submission, by another tenant, to its end."""
    begun = time.monotonic()
    job_id = asyncio.run(_submitted(world))
    with psycopg.connect(libpq_url(world.database), autocommit=True) as database:

        def over() -> bool:
            row = database.execute("SELECT status FROM jobs WHERE id = %s", [job_id]).fetchone()
            return row == ("completed",)

        assert eventually(over, 300)
    return time.monotonic() - begun


async def _submitted(world: HostileWorld) -> str:
    engine = connect(world.database, pool_size=1)
    try:
        queue = CeleryQueue(make_celery(RedisServer(world.redis)))
        return (await new_job(engine, tenant="another", queue=queue, iterations=1)).id
    finally:
        await engine.dispose()
