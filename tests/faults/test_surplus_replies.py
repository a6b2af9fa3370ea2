"""A provider that sends more replies than it gets requests: no text of another request gets into results."""

import asyncio
import json
import random
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker, bearer
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack
from tests.integration.llm.transports.raw_server import RawServer
from tests.observe import PATIENCE, eventually

ALIKE = 0.1
"""Share of replies that are accompanied by another one."""
LATE_SECONDS = 0.03
MUCH_LATER_SECONDS = 1.5
"""After the end of a shard, and mostly of its job."""
JOB: Json = {
    "personas": ["E-high", "E-low", "C-neutral"],
    "tasks": ["essay", "social_media_post"],
    "models": ["openai/any"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2, 5],
    "iterations": 28,
}
"""504 texts."""
KINDS = ("early", "late", "doubled", "split", "with it")


class Provider:
    """Answers each request with the request's own id, and some with a reply too many.

    Args:
        kinds: When the reply too many comes.
        late: How late the second of two replies comes at most, in seconds.
    """

    def __init__(self, kinds: tuple[str, ...], late: float = LATE_SECONDS) -> None:
        self._kinds = kinds
        self._late = late
        self._random = random.Random(7)
        self._sent: deque[bytes] = deque(maxlen=50)
        self.surplus = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            asked = re.search(rb"x-client-request-id: (\S+)/a\d+", head, re.IGNORECASE)
            assert length
            assert asked
            await reader.readexactly(int(length[1]))
            for wait, piece in self._pieces(self._reply(asked[1].decode())):
                await asyncio.sleep(wait)
                writer.write(piece)

    def _reply(self, name: str) -> bytes:
        message = {"role": "assistant", "content": f"I love parties like {name} and dancing"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 200, "completion_tokens": 30, "total_tokens": 230}
        body = json.dumps({"model": "any", "choices": [choice], "usage": usage}).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )

    def _pieces(self, right: bytes) -> list[tuple[float, bytes]]:
        wrong = self._random.choice(self._sent) if self._sent else None
        self._sent.append(right)
        if wrong is None or self._random.random() >= ALIKE:
            return [(0.01, right)]
        self.surplus += 1
        late = self._random.uniform(0, self._late)
        kind = self._random.choice(self._kinds)
        if kind == "early":
            late = max(late, self._late / 2)  # so that a busy machine does not read both together
            return [(0, wrong), (late, right)]
        if kind == "late":
            return [(0, right), (late, wrong)]
        if kind == "doubled":
            return [(0, right), (late, right)]
        if kind == "split":
            return [(0, right + wrong[:10]), (late, wrong[10:])]
        return [(0, wrong + right)]


@contextmanager
def serving(provider: Provider) -> Iterator[int]:
    """The provider on a loop of its own, and its port."""
    started: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        over = asyncio.Event()
        async with RawServer(provider.serve) as server:
            started.set_result((server.port, asyncio.get_running_loop(), over))
            await over.wait()

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    port, loop, over = started.result(60)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)


def completed(stack: Stack, job_id: str, headers: dict[str, str]) -> Json:
    """A job, once it has completed."""

    def seen() -> Json:
        found: Json = stack.api.get(f"/v1/jobs/{job_id}", headers=headers).json()
        return found

    assert eventually(lambda: seen()["status"] == "completed", 3 * PATIENCE), seen()
    return seen()


def own_texts(stack: Stack, job_id: str, headers: dict[str, str]) -> tuple[int, int]:
    """How many texts a job has, and how many of these answer the requests that they stand for."""
    texts = own = 0
    after: dict[str, str] = {}
    while True:
        page = stack.api.get(
            f"/v1/jobs/{job_id}/responses", params={"limit": "200", **after}, headers=headers
        )
        for response in page.json()["data"]:
            if response["text"] is None:
                continue
            texts += 1
            name = re.search(r"like job_(\S+)/generation/(\d+)/(\d+)/(\d+) and", response["text"])
            assert name, response["text"]
            own += f"resp_{'-'.join(name.groups())}" == response["id"]
        if not page.json()["has_more"]:
            return texts, own
        after = {"after": page.json()["next_cursor"]}


@contextmanager
def served_by(
    provider: Provider, tmp_path: Path, databases: Databases, template: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, str]]:
    """A service whose connection leads to the provider, and the URL of its database."""
    with (
        serving(provider) as port,
        databases.new("surplus", template=template) as url,
        running_stack(
            tmp_path,
            database_url=url,
            redis_url=valkey.url(),
            environment={
                "ASSAY_KEY_PEPPER": PEPPER,
                "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
                "OPENAI_API_KEY": "sk-any",
            },
        ) as stack,
    ):
        yield stack, url


def submitted(stack: Stack, url: str, tenant: str, **changes: object) -> tuple[str, dict[str, str]]:
    """A new job of a tenant, and the headers with which it can be read."""
    key = bearer(KeyMaker(url).make(Scope.SUBMIT, tenant=tenant))
    answer = stack.api.post("/v1/jobs", json=JOB | changes, headers=key)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"], key


@pytest.mark.parametrize(
    ("kinds", "times"),
    [
        (KINDS, 1),
        (("early",), 1),
        pytest.param(KINDS, 10, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_text_of_another_request_gets_into_results(
    tmp_path: Path,
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
    kinds: tuple[str, ...],
    times: int,
) -> None:
    provider = Provider(kinds)
    with served_by(provider, tmp_path, databases, template_database, valkey) as (stack, url):
        hook = {"url": "https://ci.example.com/hook", "events": ["connection.surplus_replies"]}
        admin = bearer(KeyMaker(url).make(Scope.ADMIN, tenant="one"))
        hook_id = stack.api.post("/v1/webhooks", json=hook, headers=admin).json()["id"]
        for _ in range(times):
            for job_id, key in [submitted(stack, url, tenant) for tenant in ("one", "two")]:
                job = completed(stack, job_id, key)
                assert own_texts(stack, job_id, key) == (504, 504)
                assert "suspect_reply" in {failed["code"] for failed in job["failures"]}
        assert provider.surplus > 30 * times
        messages = stack.api.get(f"/v1/webhooks/{hook_id}/deliveries", headers=admin).json()["data"]
        assert messages[0]["event"] == "connection.surplus_replies"
        assert times > 1 or len(messages) == 1  # in ten minutes
        if kinds == ("early",):  # used before the right reply came
            assert "replies withdrawn" in (tmp_path / "logs" / "worker1.log").read_text()


def test_texts_are_asked_for_again_if_the_surplus_comes_after_the_end_of_their_job(
    tmp_path: Path, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> None:
    provider = Provider(("early",), MUCH_LATER_SECONDS)
    with served_by(provider, tmp_path, databases, template_database, valkey) as (stack, url):
        job_id, key = submitted(stack, url, "one")
        completed(stack, job_id, key)
        assert eventually(lambda: own_texts(stack, job_id, key) == (504, 504), 3 * PATIENCE)
        job = completed(stack, job_id, key)
        assert job["completeness"] == "full"
        assert "suspect_reply" in {failed["code"] for failed in job["failures"]}
        results = stack.api.get(f"/v1/jobs/{job_id}/results", headers=key).json()
        assert results["totals"]


def test_a_job_whose_server_never_stops_is_paused(
    tmp_path: Path,
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.faults.test_surplus_replies.ALIKE", 1.0)
    provider = Provider(("late",), MUCH_LATER_SECONDS)
    with served_by(provider, tmp_path, databases, template_database, valkey) as (stack, url):
        job_id, key = submitted(stack, url, "one", iterations=1)

        def seen() -> Json:
            found: Json = stack.api.get(f"/v1/jobs/{job_id}", headers=key).json()
            return found

        assert eventually(lambda: seen()["status"] == "paused", 3 * PATIENCE), seen()
        error = seen()["error"]
        assert (error["code"], error["model"]) == ("suspect_reply", "openai/any")
        assert "Repair the server" in error["remedy"]
