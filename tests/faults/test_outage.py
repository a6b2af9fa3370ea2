"""A provider's server that is not there when a job starts, nor for longer than jobs wait, and then is."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from embedded.supervisor import free_port
from embedded.valkey import EmbeddedValkey
from tests.databases import Databases
from tests.faults.conftest import FaultyWorld, faulty_world
from tests.faults.test_control import SMALL
from tests.observe import eventually

OUTAGE_SECONDS = 3.0
ENDED_SECONDS = 150.0
"""The workers try the server every 30 seconds."""
TEXT = "I love parties. I talked to everybody. On Sunday I slept."


class _Writer(BaseHTTPRequestHandler):
    """Answers each call with a text, and an empty request with 400."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": TEXT}
        reply = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        status, answer = (200, reply) if asked else (400, {"error": {"message": "no model"}})
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@pytest.fixture
def port() -> int:
    return free_port("127.0.0.1", 0)


@pytest.fixture
def world(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, port: int
) -> Iterator[FaultyWorld]:
    """A running service whose calls are tried once only, and whose jobs do not wait long."""
    provider = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": "sk-any",
        "ASSAY_CALL_ATTEMPTS": "1",
        "ASSAY_OUTAGE_SECONDS": str(OUTAGE_SECONDS),
    }
    with faulty_world(databases, template_database, valkey, provider) as running:
        yield running


def test_pauses_the_job_and_costs_no_item(world: FaultyWorld, port: int) -> None:
    job_id = world.stack.submit(SMALL | {"models": ["openai/writer"]})
    assert eventually(lambda: world.stack.job(job_id)["status"] == "paused", 60)
    paused = world.stack.job(job_id)
    assert paused["status_reason"] == "provider_unreachable"
    assert "could not be reached for 0:00:0" in paused["error"]["detail"]
    with ThreadingHTTPServer(("127.0.0.1", port), _Writer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        job = world.stack.ended(job_id, ENDED_SECONDS)
        server.shutdown()
    assert (job["status"], job["completeness"]) == ("completed", "full")
