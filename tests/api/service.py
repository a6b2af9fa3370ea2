"""The API as a real process, and a client that holds every answer to its declared form."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from fastapi.routing import APIRoute, iter_route_contexts
from psycopg.errors import DeadlockDetected
from pydantic import TypeAdapter

from app.api.http.problems import Problem
from app.main import create_app
from app.settings import Settings
from embedded.supervisor import free_port
from tests.databases import libpq_url
from tests.observe import PATIENCE

APP = create_app(Settings(database_url="postgresql://unused", redis_url="redis://unused"))
"""Tells what is served; it serves nothing itself."""
SERVED = list(iter_route_contexts(APP.routes))
DESCRIBED = [
    route for route in SERVED if isinstance(route.original_route, APIRoute) and route.include_in_schema
]
"""The operations of the OpenAPI document."""
TABLES = (
    "jobs",
    "idempotency_keys",
    "cells",
    "shards",
    "shard_usage",
    "responses",
    "verdicts",
    "grades",
    "preparations",
    "calls",
    "job_results",
    "job_sets",
    "budgets",
    "reservations",
    "uploads",
    "upload_records",
    "upload_parts",
)
MOST_STREAMS = 4
"""Exports and event streams at a time, of the API without workers."""
CONFIG = """
connections:
  acme:
    kind: openai
    base_url: http://127.0.0.1:9/v1
    models: [acme-1, acme-judge]
    limits: {requests_per_minute: 600, max_in_flight: 7}
    prices: {acme-1: {input: 1.0, output: 2.0}}
"""

Json = dict[str, Any]


def declared_answer(method: str, path: str, status: int) -> Any:
    """The model, or the union of models, that the OpenAPI document promises for an answer; problems look the same everywhere."""
    if status >= 400 and not (path == "/readyz" and status == 503):
        return Problem
    for route in DESCRIBED:
        if method in (route.methods or ()) and route.path_regex.match(path):
            if route.response_model is not None and status == (route.status_code or 200):
                return route.response_model
            declared = route.responses.get(status)
            assert declared is not None or status == 204, f"{method} {path} does not declare {status}"
            return None if declared is None else declared.get("model")
    return None


def verify(response: httpx2.Response) -> None:
    """Every answer has an id and the form that its route declares; the service never fails by itself."""
    request = response.request
    response.read()
    assert response.headers["x-request-id"].startswith("req_")
    if response.status_code >= 400 and request.method != "HEAD" and request.url.path != "/readyz":
        assert response.headers["content-type"] == "application/problem+json", response.text[:200]
        problem = response.json()
        assert problem["status"] == response.status_code
        assert problem["request_id"] == response.headers["x-request-id"]
    model = declared_answer(request.method, request.url.path, response.status_code)
    is_json = "json" in response.headers.get("content-type", "")
    if model is not None and request.method != "HEAD" and (is_json or response.status_code >= 400):
        TypeAdapter(model).validate_json(response.content, strict=True)


class Service:
    """A running API, its database, and a client; and the API's process and log, where it is our own child."""

    def __init__(
        self,
        url: str,
        database_url: str,
        process: subprocess.Popen[bytes] | None = None,
        log: Path | None = None,
    ) -> None:
        self.url = url
        self.database_url = database_url
        self.process = process
        self.log = log
        self.http = httpx2.Client(
            base_url=url, timeout=PATIENCE, trust_env=False, event_hooks={"response": [verify]}
        )

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.http.get(path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> httpx2.Response:
        return self.http.post(path, **options) if body is None else self.http.post(path, json=body, **options)

    def send(self, path: str, body: bytes, content_type: str = "application/json") -> httpx2.Response:
        """Posts bytes as they are."""
        return self.http.post(path, content=body, headers={"content-type": content_type})

    def submit(self, body: Json, **options: Any) -> Json:
        response = self.post("/v1/jobs", body, **options)
        assert response.status_code == 202, response.text
        job: Json = response.json()
        return job

    def job(self, job_id: str) -> Json:
        job: Json = self.get(f"/v1/jobs/{job_id}").json()
        return job

    def wait(self, job_id: str, *statuses: str, seconds: float = PATIENCE) -> Json:
        """The job, once it is in one of these states."""
        deadline = time.monotonic() + seconds
        while (job := self.job(job_id))["status"] not in statuses:
            assert time.monotonic() < deadline, f"{job['status']}: {job['progress']}"
            time.sleep(0.1)
        return job

    def walk(self, path: str, **parameters: Any) -> Iterator[Json]:
        """Everything that a list holds, page after page."""
        while True:
            page = self.get(path, params=parameters).json()
            assert page["has_more"] is (page["next_cursor"] is not None)
            yield from page["data"]
            if not page["has_more"]:
                return
            parameters["after"] = page["next_cursor"]

    def rows(self, tables: Sequence[str] = TABLES) -> dict[str, int]:
        """How many rows each of these tables has."""
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        with psycopg.connect(libpq_url(self.database_url)) as connection:
            row = connection.execute(f"SELECT {counts}".encode()).fetchone() or ()
            return dict(zip(tables, map(int, row), strict=True))

    def count(self, query: str) -> int:
        """What a query counts."""
        with psycopg.connect(libpq_url(self.database_url)) as connection:
            return int((connection.execute(query.encode()).fetchone() or (0,))[0])

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(libpq_url(self.database_url), autocommit=True) as connection:
            connection.execute(statement.encode(), values)

    def empty(self, *tables: str) -> None:
        """Removes all rows of tables, and of those that refer to them.

        What an earlier test sent may still be at work on them, and Postgres may end either of two transactions that wait
        for each other.
        """
        while True:
            with suppress(DeadlockDetected):
                return self.execute(f"TRUNCATE {', '.join(tables)} CASCADE")


@contextmanager
def serving(
    directory: Path, database_url: str, redis_url: str, *, port: int = 0, **environment: str
) -> Iterator[Service]:
    """The API alone, as `assay up` starts it: nothing works on its jobs."""
    config = directory / "assay.yaml"
    config.write_text(CONFIG)
    port = free_port("127.0.0.1", port)
    variables = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "ASSAY_CONFIG": str(config),
        "ASSAY_SIMULATOR_URL": "http://127.0.0.1:9",
        "ASSAY_LOG_LEVEL": "WARNING",
        "ASSAY_TENANT_CHANGES_PER_SECOND": "1000",
        **environment,
    }
    command = [sys.executable, "-m", "app.serve", "--factory", "app.main:create_app", "--host", "127.0.0.1"]
    log_file = directory / "api.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--no-access-log", "--timeout-graceful-shutdown", "3"],
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
        )
    try:
        service = Service(f"http://127.0.0.1:{port}", database_url, process, log_file)
        with service.http:
            _await_listening(service, process, log_file)
            yield service
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _await_listening(service: Service, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            service.get("/healthz")
        except httpx2.ConnectError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return


def job_body(**changes: Any) -> Json:
    """A small valid job; a change to ``None`` leaves the field out."""
    body: Json = {
        "personas": ["E-low"],
        "tasks": ["essay"],
        "models": ["simulated/sim-faithful"],
        "judges": ["simulated/sim-judge"],
        "instructions": [1],
        "iterations": 2,
    }
    return {name: value for name, value in (body | changes).items() if value is not None}


def pointers(response: httpx2.Response) -> list[str]:
    return [error["pointer"] for error in response.json()["errors"]]


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def assert_told_as_broken_off(service: Service, path: str) -> None:
    """The log says once that an answer was broken off, and takes it for nobody's error."""
    assert service.log is not None
    written = service.log.read_text()
    events = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    told = [event for event in events if event.get("path") == path]
    assert [(event["event"], event["level"]) for event in told] == [("answer broken off", "info")]
    assert "EndedError" not in written
