"""A provider's server that is not there, or answers nothing but errors for a while; and a prompt that it can never take."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self

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


RESET = 0
"""A status: the connection is closed without an answer."""
FAULT_SECONDS = 15.0
"""In less than 8 s a call that nothing holds up has had its four attempts."""


class _Server(ThreadingHTTPServer):
    """Answers each call with a text, and an empty request with 400, until it is told otherwise.

    Attributes:
        answered: Calls answered with a text.
        failed: Prompts of those that were not.
        fault: Status of all calls after the first five; ``None`` for none.
        poison: The prompt that always has the status ``poisonous``: the first one that comes when there is none yet.
    """

    def __init__(self, port: int, *, poisonous: int | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Writer)
        self.answered = 0
        self.failed: list[str] = []
        self.fault: int | None = None
        self.poison = ""
        self.poisonous = poisonous

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def status_of(self, prompt: str) -> int:
        has_begun = self.answered >= 5
        if self.poisonous is not None and has_begun:
            self.poison = self.poison or prompt
        fault = self.fault if has_begun else None
        status = self.poisonous if self.poison == prompt else fault
        if status is None:
            self.answered += 1
            return 200
        self.failed.append(prompt)
        return status


class _Writer(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": TEXT}
        reply = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        status = self.server.status_of(json.dumps(asked["messages"])) if asked else 400
        if status == RESET:
            return
        body = json.dumps(reply if status == 200 else {"error": {"message": "it does not work"}}).encode()
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
def limits() -> dict[str, str]:
    """Calls are tried once only, and jobs do not wait long."""
    return {"ASSAY_CALL_ATTEMPTS": "1", "ASSAY_OUTAGE_SECONDS": str(OUTAGE_SECONDS)}


@pytest.fixture
def world(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, port: int, limits: dict[str, str]
) -> Iterator[FaultyWorld]:
    """A running service."""
    provider = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "sk-any"} | limits
    with faulty_world(databases, template_database, valkey, provider) as running:
        yield running


def test_pauses_the_job_and_costs_no_item(world: FaultyWorld, port: int) -> None:
    job_id = world.stack.submit(SMALL | {"models": ["openai/writer"]})
    assert eventually(lambda: world.stack.job(job_id)["status"] == "paused", 60)
    paused = world.stack.job(job_id)
    assert paused["status_reason"] == "provider_unreachable"
    assert "could not be reached for 0:00:0" in paused["error"]["detail"]
    with _Server(port):
        job = world.stack.ended(job_id, ENDED_SECONDS)
    assert (job["status"], job["completeness"]) == ("completed", "full")


MANY = SMALL | {"models": ["openai/writer"], "tasks": ["questionnaire"], "iterations": 3}


@pytest.mark.parametrize("limits", [{"ASSAY_CALL_ATTEMPTS": "4"}])
class TestErrors:
    @pytest.mark.parametrize(
        "fault", [500, 502], ids=["of the server", "of a proxy that answers empty requests"]
    )
    def test_of_all_calls_for_a_while_cost_no_item(self, world: FaultyWorld, port: int, fault: int) -> None:
        with _Server(port) as server:
            server.fault = fault
            job_id = world.stack.submit(MANY)
            assert eventually(lambda: bool(server.failed), 60)
            time.sleep(FAULT_SECONDS)
            server.fault = None
            job = world.stack.ended(job_id, ENDED_SECONDS)
        assert (job["status"], job["completeness"]) == ("completed", "full")

    @pytest.mark.parametrize("poisonous", [500, RESET], ids=["an error", "a reset"])
    def test_of_one_prompt_are_its_own(self, world: FaultyWorld, port: int, poisonous: int) -> None:
        with _Server(port, poisonous=poisonous) as server:
            job_id = world.stack.submit(MANY)
            job = world.stack.ended(job_id, ENDED_SECONDS)
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        assert set(server.failed) == {server.poison}
