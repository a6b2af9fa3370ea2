"""A stack whose parts are killed, and a job's result as it is when nothing happens."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import psycopg
import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, running_stack

LATENCY_MS = 60.0
IN_FLIGHT = 16  # for each model: with the latency, a job lasts long enough to be struck in its middle
SLOTS = 4  # fewer than the 16 shards that a job may announce at a time, so that messages wait in the queue
LEASE_SECONDS = 2.0
ENVIRONMENT = {
    "ASSAY_MAX_IN_FLIGHT": str(IN_FLIGHT),
    "ASSAY_LEASE_SECONDS": str(LEASE_SECONDS),
    "ASSAY_SWEEP_SECONDS": "0.3",
}

KNOWN_MODEL = "gpt-4o-2024-08-06"
JOB: Json = {
    "personas": ["E-high", "E-low", "C-neutral"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-drifting", "simulated-anthropic/sim-refusing"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2, 5],
    "iterations": 3,
    "control": True,
}
"""162 texts and about 2,600 verdicts in 12 cells and four of the control arm."""


@dataclass(frozen=True)
class Undisturbed:
    """What a job is when nothing happens to it."""

    results: Json
    calls: int


@dataclass(frozen=True)
class FaultyWorld:
    """A running stack, and its database as an administrator sees it."""

    stack: Stack
    database: psycopg.Connection


class _Refusal(BaseHTTPRequestHandler):
    """A provider that knows one model, and no key."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        if asked == KNOWN_MODEL:
            status, code, message = 401, "invalid_api_key", "Incorrect API key provided"
        else:
            status, code, message = 404, "model_not_found", f"The model `{asked}` does not exist"
        body = json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@pytest.fixture(scope="module")
def provider_without_our_key() -> Iterator[str]:
    """The base URL of a server that answers 401, and 404 where the model is another than `KNOWN_MODEL`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusal) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@contextmanager
def faulty_world(
    databases: Databases,
    template: str,
    valkey: EmbeddedValkey,
    environment: Mapping[str, str],
    workers: int = 1,
) -> Iterator[FaultyWorld]:
    """A running service on a database of its own, with further variables of its environment."""
    with (
        databases.new("faults", template=template) as url,
        scratch_directory() as directory,
        running_stack(
            directory,
            database_url=url,
            redis_url=valkey.url(),
            slots=SLOTS,
            workers=workers,
            environment={**ENVIRONMENT, **environment},
        ) as stack,
        psycopg.connect(libpq_url(url), autocommit=True) as database,
    ):
        yield FaultyWorld(stack, database)


@pytest.fixture(scope="module")
def world(
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
    provider_without_our_key: str,
) -> Iterator[FaultyWorld]:
    """A running service for the tests of a module."""
    provider = {"OPENAI_BASE_URL": provider_without_our_key, "OPENAI_API_KEY": "sk-wrong"}
    with faulty_world(databases, template_database, valkey, provider) as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(world: FaultyWorld) -> Undisturbed:
    """The result of the job when nothing happens to it, and the calls that it takes."""
    world.stack.simulate(latency_ms=0)
    job_id = world.stack.submit(JOB)
    job = world.stack.ended(job_id)
    assert (job["status"], job["completeness"]) == ("completed", "full")
    return Undisturbed(world.stack.results(job_id), len(world.stack.ledger(job_id)))


@pytest.fixture
def slow(world: FaultyWorld) -> Iterator[Stack]:
    """The stack with a provider that takes its time; afterwards nothing is at work any more."""
    world.stack.simulate(latency_ms=LATENCY_MS, error_rate=0, requests_per_minute=0)
    yield world.stack
    world.stack.simulate(latency_ms=LATENCY_MS, error_rate=0, requests_per_minute=0)
