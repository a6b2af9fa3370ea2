"""A key that a provider repeats wherever it can turns up in no table, no queue, no log, no report and no answer."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Lock, Thread
from typing import get_args

import psycopg
import pytest
import redis

from app.services.results.exports import ExportFormat
from embedded.valkey import EmbeddedValkey
from tests.canaries import RANDOM, anthropic_reply, found_in, openai_reply, spellings, texts_of
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, running_stack

pytestmark = pytest.mark.slow

KEY = f"sk-proj-{RANDOM}"
FORMATS = ("html", "json", "csv", "jsonl", "parquet")


class _Parrot(BaseHTTPRequestHandler):
    """A provider that shows everybody's key in all that it says, also when all is well."""

    shown = cycle(spellings(KEY))
    turns = cycle(["fault", "answer", "grade", "answer"])
    lock = Lock()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.lock:
            shown, turn = next(self.shown), next(self.turns)
        status, body = 200, self._good(f"4 is my grade. Your key is {shown}.")
        if turn == "fault":
            status, body = 500, {"error": {"message": f"{shown} sent {sent}", "code": shown[:64]}}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-request-id", shown)
        self.send_header("request-id", shown)
        self.end_headers()
        self.wfile.write(content)

    def _good(self, text: str) -> Json:
        reply = anthropic_reply if self.path.endswith("/messages") else openai_reply
        return reply(
            text, model=self.headers["Authorization"], system_fingerprint=self.headers["Authorization"]
        )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@pytest.fixture
def parrot() -> Iterator[str]:
    """Its root URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Parrot) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _connect(stack: Stack, name: str, kind: str, url: str) -> None:
    body = {"name": name, "kind": kind, "base_url": url, "api_key": KEY}
    answer = stack.api.post("/v1/connections", json=body)
    assert answer.status_code == 201, answer.text


def _tables(database_url: str) -> Iterator[str]:
    """Every table, as a dump has it."""
    with psycopg.connect(libpq_url(database_url)) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (name,) in names:
            with connection.cursor().copy(f'COPY "{name}" TO STDOUT') as rows:
                yield "".join(bytes(row).decode() for row in rows)


def _keys(redis_url: str) -> Iterator[str]:
    """Every key, as a dump has it."""
    with redis.Redis.from_url(redis_url) as client:
        for key in client.scan_iter():
            yield (key + (client.dump(key) or b"")).decode("latin-1")


def _answers(stack: Stack, job_id: str) -> Iterator[str]:
    for path in ("", "/results", "/responses?limit=200", "/manifest"):
        yield stack.api.get(f"/v1/jobs/{job_id}{path}").text
    for form in FORMATS:
        yield stack.api.get(f"/v1/jobs/{job_id}/report", params={"format": form}).content.decode("latin-1")
    for form in get_args(ExportFormat):
        exported = stack.api.get(f"/v1/jobs/{job_id}/exports/{form}")
        assert exported.status_code == 200, exported.text
        yield from texts_of(exported.content)
    for path in ("/v1/connections", "/v1/models", "/metrics", f"/jobs/{job_id}"):
        yield stack.api.get(path).text


def _logs(directory: Path) -> Iterator[str]:
    for log in directory.glob("logs/*.log"):
        yield log.read_text(errors="replace")


def test_a_key_turns_up_nowhere(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, parrot: str
) -> None:
    job = {
        "personas": ["E-low"],
        "tasks": ["essay"],
        "instructions": [1, 2],
        "iterations": 1,
        "models": ["lab/m", "lab-anthropic/m"],
        "judges": ["lab/judge", "lab-anthropic/judge"],
    }
    environment = {"ASSAY_ALLOWED_NETWORKS": "127.0.0.0/8", "ASSAY_LOG_LEVEL": "DEBUG"}
    with (
        databases.new("canaries", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url(), environment=environment) as stack,
    ):
        _connect(stack, "lab", "openai", f"{parrot}/v1")
        _connect(stack, "lab-anthropic", "anthropic", parrot)
        ended = stack.ended(stack.submit(job))
        assert (ended["status"], ended["status_reason"]) == ("failed", "no_score")  # the parrot never judges
        looked_at = {
            "tables": list(_tables(url)),
            "queue": list(_keys(valkey.url())),
            "answers": list(_answers(stack, ended["id"])),
            "logs": list(_logs(directory)),
        }
        assert (directory / "encryption-keys").stat().st_mode & 0o777 == 0o600
    assert any("[key]" in table for table in looked_at["tables"])
    for place, texts in looked_at.items():
        assert texts, place
        for text in texts:
            assert found_in(text) == [], place
