"""A provider that sends more replies than it gets requests: no text of another request gets into results."""

import asyncio
import json
import random
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
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
LONGEST_LATE = 0.03
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
    """

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
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
        late = self._random.uniform(0, LONGEST_LATE)
        kind = self._random.choice(self._kinds)
        if kind == "early":
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


@pytest.mark.parametrize(
    ("kinds", "times"), [(KINDS, 1), (("early",), 1), pytest.param(KINDS, 10, marks=pytest.mark.long)]
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
    with ExitStack() as exits:
        port = exits.enter_context(serving(provider))
        url = exits.enter_context(databases.new("surplus", template=template_database))
        environment = {
            "ASSAY_KEY_PEPPER": PEPPER,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "sk-any",
        }
        stack = exits.enter_context(
            running_stack(tmp_path, database_url=url, redis_url=valkey.url(), environment=environment)
        )
        hook = {"url": "https://ci.example.com/hook", "events": ["connection.surplus_replies"]}
        admin = bearer(KeyMaker(url).make(Scope.ADMIN, tenant="one"))
        hook_id = stack.api.post("/v1/webhooks", json=hook, headers=admin).json()["id"]
        for _ in range(times):
            jobs: list[tuple[str, dict[str, str]]] = []
            for tenant in ("one", "two"):
                key = bearer(KeyMaker(url).make(Scope.SUBMIT, tenant=tenant))
                answer = stack.api.post("/v1/jobs", json=JOB, headers=key)
                assert answer.status_code == 202, answer.text
                jobs.append((answer.json()["id"], key))
            for job_id, key in jobs:
                job = completed(stack, job_id, key)
                assert own_texts(stack, job_id, key) == (504, 504)
                assert "suspect_reply" in {failed["code"] for failed in job["failures"]}
        assert provider.surplus > 30 * times
        messages = stack.api.get(f"/v1/webhooks/{hook_id}/deliveries", headers=admin).json()["data"]
        assert messages[0]["event"] == "connection.surplus_replies"
        assert times > 1 or len(messages) == 1  # in ten minutes
        if kinds == ("early",):  # used before the right reply came
            assert "replies withdrawn" in (tmp_path / "logs" / "worker1.log").read_text()
