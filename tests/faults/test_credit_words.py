"""Credit that runs out in mid-job, in the words of many providers, over real HTTP and with a real worker."""

import json
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import pytest

from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, connected_stack
from tests.integration.llm.provider_replies import NO_CREDIT, fault
from tests.integration.llm.stub_provider import Answer
from tests.observe import eventually

ANSWERED = 30
"""Calls of each job that the provider answers before the credit is used up."""
AT_MOST = 20
"""Calls of a job that its only worker may have refused."""
AT_MOST_UNKNOWN = 30
"""The same where no rule knows the refusal: ten in a row, and the calls that are under way by then."""
PATIENCE = 120.0
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2, 3],
    "iterations": 5,
}
"""150 texts."""
UNKNOWN = {
    "an unknown code, forbidden": fault(403, "Le quota du projet est atteint.", code="quota_projet"),
    "no code, bad request": fault(400, "Das Kontingent ist ausgeschöpft."),
}
"""Refusals that no rule knows: a run of them stops the job."""
REFUSALS: dict[str, Answer] = {name: row[1] for name, row in NO_CREDIT.items() if row[3] not in {"http_429", "rate_limit_exceeded"}} | UNKNOWN  # fmt: skip
NAMES = {f"p{number}": name for number, name in enumerate(REFUSALS)}
"""The connection of each provider."""


class Providers(ThreadingHTTPServer):
    """Serves each provider below a path of its own; counts the calls before and after the credit is used up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answered: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._lock = Lock()

    def answer(self, connection: str) -> Answer:
        with self._lock:
            if self.answered[connection] < ANSWERED:
                self.answered[connection] += 1
                message = {"role": "assistant", "content": "I like to be among people."}
                return Answer.of_json(
                    {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                )
            self.refused[connection] += 1
            return REFUSALS[NAMES[connection]]


class _Handler(BaseHTTPRequestHandler):
    server: Providers
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.answer(self.path.split("/")[1])
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Writes no log."""


@pytest.fixture(scope="module")
def providers() -> Iterator[Providers]:
    with Providers() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def stack(providers: Providers, databases: Databases, template_database: str) -> Iterator[Stack]:
    url = f"http://127.0.0.1:{providers.server_port}"
    connections: dict[str, object] = {
        name: {"kind": "openai", "base_url": f"{url}/{name}/v1", "api_key_env": "PROVIDER_KEY"}
        for name in NAMES
    }
    with (
        scratch_directory() as directory,
        connected_stack(
            connections, directory, databases, template_database, PROVIDER_KEY="sk-credit-words-0123456789"
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def job_ids(stack: Stack) -> dict[str, str]:
    """A job of each provider; all run at the same time."""
    return {name: stack.submit(JOB | {"models": [f"{name}/writer"]}) for name in NAMES}


def words_of(answer: Answer) -> str:
    """The provider's own words in a refusal."""
    body = json.loads(answer.body)
    error = body[0] if isinstance(body, list) else body
    error = error.get("error", error)
    if isinstance(error.get("detail") if isinstance(error, dict) else None, dict):
        error = error["detail"]["error"]
    if isinstance(error, str):
        return error
    return str(error.get("message") or error.get("detail") or body["base_resp"]["status_msg"])


def most(connection: str) -> int:
    return AT_MOST_UNKNOWN if NAMES[connection] in UNKNOWN else AT_MOST


def paused(stack: Stack, job_id: str) -> Json:
    """A job that no longer runs, and how it ended."""
    return stack.until(job_id, lambda job: job["status"] in {*TERMINAL, "paused"}, PATIENCE)


@pytest.mark.parametrize("connection", NAMES, ids=NAMES.values())
def test_the_job_pauses_with_the_providers_words(
    connection: str, providers: Providers, stack: Stack, job_ids: dict[str, str]
) -> None:
    job = paused(stack, job_ids[connection])
    assert job["status"] == "paused"
    assert words_of(REFUSALS[NAMES[connection]]) in job["error"]["detail"]
    assert 1 <= providers.refused[connection] <= most(connection)


def test_no_call_follows(providers: Providers, stack: Stack, job_ids: dict[str, str]) -> None:
    for job_id in job_ids.values():
        paused(stack, job_id)

    def is_quiet() -> bool:
        refused = providers.refused.total()
        return not eventually(lambda: providers.refused.total() > refused, 1.0)

    assert eventually(is_quiet, PATIENCE)
    assert all(calls <= most(name) for name, calls in providers.refused.items())
