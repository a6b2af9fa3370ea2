"""A tenant's jobs whose calls take minutes, beside another tenant's small job."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import httpx2
import psycopg
import pytest

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker, bearer
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, running_stack
from tests.faults.trial import report
from tests.observe import eventually

SLOW_SECONDS = 600.0
"""Time of the slow tenant's calls; the test ends before the first of them does, however busy the machine is."""
SLOW_JOBS = 30
SLOTS = 8
MORE_SECONDS = 2.0
"""How much longer the small job may take than alone; asserted by the long form, on a machine that has nothing else to do."""
SLOW: Json = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["openai/shared"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 2,
}
SAME_MODEL = SLOW | {"personas": ["E-high"]}
OTHER_MODEL = SAME_MODEL | {"models": ["simulated/sim-faithful"]}


class Server(ThreadingHTTPServer):
    """A provider that writes as a slow persona for minutes, and as any other at once."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.over = Event()
        self.slow = 0


class _Answer(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        if b"introverted person" in asked:
            self.server.slow += 1
            self.server.over.wait(SLOW_SECONDS)
        message = {"role": "assistant", "content": "I love people. I dance all night."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 200, "completion_tokens": 9, "total_tokens": 209}
        body = json.dumps({"model": "shared", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            return  # the caller did not wait

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@contextmanager
def provider() -> Iterator[Server]:
    """The provider behind the connection `openai`."""
    with Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()


class Tenant:
    """A tenant at the service's API."""

    def __init__(self, stack: Stack, database_url: str, name: str) -> None:
        self._api = stack.api
        self._key = bearer(KeyMaker(database_url).make(Scope.SUBMIT, tenant=name))

    def submit(self, job: Json) -> str:
        """The id of a new job."""
        answer = self._api.post("/v1/jobs", json=job, headers=self._key)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def act(self, job_id: str, verb: str) -> None:
        """Cancels or retries a job."""
        answer = self._api.post(f"/v1/jobs/{job_id}/{verb}", headers=self._key)
        assert answer.status_code == 200, answer.text

    def status(self, job_id: str) -> str:
        answer: httpx2.Response = self._api.get(f"/v1/jobs/{job_id}", headers=self._key)
        return str(answer.json()["status"])

    def seconds(self, job: Json) -> float:
        """How long a job takes."""
        started = time.monotonic()
        job_id = self.submit(job)
        assert eventually(lambda: self.status(job_id) == "completed", SLOW_SECONDS)
        return time.monotonic() - started


@pytest.mark.parametrize(
    ("workers", "times"),
    [(2, 1), pytest.param(1, 5, marks=pytest.mark.long), pytest.param(2, 5, marks=pytest.mark.long)],
)
def test_its_calls_hold_up_no_other_tenant_s_small_job(
    tmp_path: Path,
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
    workers: int,
    times: int,
) -> None:
    with ExitStack() as exits:
        server = exits.enter_context(provider())
        url = exits.enter_context(databases.new("slow", template=template_database))
        environment = {
            "ASSAY_KEY_PEPPER": PEPPER,
            "ASSAY_CALL_DEADLINE_SECONDS": str(2 * SLOW_SECONDS),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
            "OPENAI_API_KEY": "sk-any",
        }
        stack = exits.enter_context(
            running_stack(
                tmp_path,
                database_url=url,
                redis_url=valkey.url(),
                slots=SLOTS,
                workers=workers,
                environment=environment,
            )
        )
        database = exits.enter_context(psycopg.connect(libpq_url(url), autocommit=True))
        slow, other = (Tenant(stack, url, name) for name in ("slow", "other"))
        alone = [max(other.seconds(job) for _ in range(times)) for job in (OTHER_MODEL, SAME_MODEL)]
        jobs = [slow.submit(SLOW) for _ in range(SLOW_JOBS)]
        assert eventually(lambda: _held(database) >= workers * SLOTS and server.slow >= 3, 60)
        beside = [max(other.seconds(job) for _ in range(times)) for job in (OTHER_MODEL, SAME_MODEL)]
        assert {slow.status(job) for job in jobs} <= {"queued", "running"}  # none of their calls has ended
        if times > 1:
            more = [after - before for before, after in zip(alone, beside, strict=True)]
            assert max(more) <= MORE_SECONDS, (alone, beside)
        figures = {"alone": alone[0], "beside": beside[0], "alone_same": alone[1], "beside_same": beside[1]}
        report(f"slow tenant, {workers} workers", seed=0, n=times, of=times, **figures)


def _held(database: psycopg.Connection) -> int:
    """How many shards workers hold."""
    row = database.execute(
        "SELECT count(*) FROM shards WHERE lease_expires_at > clock_timestamp()"
    ).fetchone()
    assert row is not None
    return int(row[0])
