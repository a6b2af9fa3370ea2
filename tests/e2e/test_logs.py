"""What a whole service writes into its logs while a provider repeats what it was sent."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import running_stack

pytestmark = pytest.mark.slow

KEY = "sk-secret-0123456789"
PERSONA = "an outspoken lighthouse keeper"
JUDGE = "gpt-judge"


class _Parrot(BaseHTTPRequestHandler):
    """A provider whose errors repeat the request, its key included."""

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        words = f"{self.headers['Authorization']} sent {sent}"
        code = "content_policy_violation" if JUDGE in sent else "insufficient_quota"
        body = json.dumps(
            {"error": {"message": words, "type": "invalid_request_error", "code": code}}
        ).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@pytest.fixture
def parrot() -> Iterator[str]:
    """Its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Parrot) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_logs_name_jobs_and_shards_but_no_key_and_no_text(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, parrot: str
) -> None:
    environment = {
        "OPENAI_BASE_URL": parrot,
        "OPENAI_API_KEY": KEY,
        "ASSAY_LOG_LEVEL": "DEBUG",
        "ASSAY_LOG_FORMAT": "json",
    }
    job = {
        "personas": [{"id": "keeper", "description": PERSONA, "traits": {"E": "high"}}],
        "tasks": ["essay"],
        "instructions": [1],
        "iterations": 1,
    }
    with (
        databases.new("logs", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url(), environment=environment) as stack,
    ):
        unjudged = stack.submit(job | {"models": ["simulated/sim-faithful"], "judges": [f"openai/{JUDGE}"]})
        stopped = stack.submit(job | {"models": ["openai/gpt-writer"], "judges": ["simulated/sim-judge"]})
        stack.ended(unjudged)
        assert stack.ended(stopped)["status_reason"] == "insufficient_quota"
        texts = [str(entry["text"])[:40] for entry in stack.ledger(unjudged) if entry["kind"] == "generation"]
        log = "".join(file.read_text() for file in sorted((directory / "logs").glob("*.log")))
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    warned = [event for event in events if event["event"] == "verdict failed"]
    assert {event["job"] for event in warned} == {unjudged}
    assert all(event["shard"] for event in warned)
    assert {event["code"] for event in warned} == {"content_policy_violation"}
    assert [event["job"] for event in events if event["event"] == "job stopped"] == [stopped]
    assert texts
    for secret in (KEY, "lighthouse", *texts):
        assert secret not in log
