"""Every way in which a reasoner or a judge can answer badly, as replies on the wire, through the official SDKs."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.domain.providers.model import ChatReply, ChatRequest
from app.instruments.personagym_loader import load_personagym
from app.llm.connections.connections import load_connections
from app.llm.gateway import Gateway
from app.services.results.responses import stream_all
from tests.integration.engine import engine
from tests.integration.jobs import TENANT
from tests.integration.services.execution.test_prepare_persona import new_gym_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_task

__all__ = ["engine"]

POOL = [environment.name for environment in load_personagym().environments]
QUESTIONS = [
    "You find a purse on the road. What do you do?",
    "Your night train stops in a tunnel. How do you calm the child beside you?",
    "A neighbour picks your roses. What do you tell her the next morning?",
    "The baker gives you too much change. Whom do you think of first?",
    "It snows in May. Which plans do you drop?",
    "A stranger asks for your coat. Why would you give it away?",
    "Somebody sings badly at the wedding. Do you join in?",
    "The doctor is late by three hours. How do you spend them?",
    "Your boat leaks in the harbour. What do you save?",
    "An old friend asks for money. What is your answer?",
    "The museum closes for good. What will you miss?",
    "A dog follows you home. Where does it sleep?",
]
EXAMPLES = {score: f"Score {score}: Response - An example worth {score} points." for score in range(1, 6)}
SETS = "\n\n".join(EXAMPLES.values())
Script = Callable[[str, str], tuple[str, str] | None]
"""What is said to (path, prompt), and why it ended; ``None`` for what is usually said."""


def usual(path: str, prompt: str) -> str:
    """A reply that is as it should be."""
    stage, _, rest = path.partition("/")
    if stage == "environments":
        return json.dumps(POOL[:2])
    if stage == "questions":
        count = re.search(r"exactly (\d+)", prompt)
        assert count is not None
        return json.dumps([question for question in QUESTIONS if question not in prompt][: int(count[1])])
    if stage == "exemplars":
        return SETS
    return "It fits. Therefore, the final score is 4." if rest.count("/") == 3 else "I keep calm."


@dataclass
class Server:
    """A provider that speaks both wire formats and says what it is told."""

    script: Script = lambda *_: None
    url: str = ""

    def reply(self, line: str, headers: Any, body: Any) -> dict[str, Any]:
        name = headers.get("x-client-request-id") or headers["x-request-id"]
        path = name.partition("/")[2].rpartition("/")[0]
        prompt = body["messages"][-1]["content"]
        prompt = prompt if isinstance(prompt, str) else prompt[0]["text"]
        text, end = self.script(path, prompt) or (usual(path, prompt), "stop")
        if "/chat/completions" in line:
            reasons = {"refusal": "content_filter"}
            message = {"role": "assistant", "content": text}
            return {"choices": [{"index": 0, "message": message, "finish_reason": reasons.get(end, end)}]}
        reasons = {"stop": "end_turn", "length": "max_tokens"}
        return {"content": [{"type": "text", "text": text}], "stop_reason": reasons.get(end, end)}


@contextmanager
def serving() -> Iterator[Server]:
    """A running one."""
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent = json.dumps(found.reply(self.path, self.headers, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()


@dataclass
class OverTheWire(Provider):
    """Sends every call by the gateway of the service."""

    gateway: Gateway = field(kw_only=True)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.calls.append(request.request_id.partition("/")[2].rpartition("/")[0])
        return await self.gateway.complete(request)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
async def worker(engine: AsyncEngine, server: Server) -> AsyncIterator[Worker]:
    gateway = Gateway(load_connections(None, {}, server.url))
    made = Worker(engine, OverTheWire(gateway=gateway))
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made
    await gateway.close()


async def prepared(
    worker: Worker, server: Server, stage: str, reply: str, end: str, connection: str, questions: int
) -> tuple[StoredStep, int]:
    """The first step of a stage whose first ask got a bad reply, and how many asks the stage took."""
    server.script = lambda path, _: (reply, end) if re.fullmatch(rf"{stage}/0(/\w+)?(/0)?/1", path) else None
    job = await new_gym_job(
        worker.engine,
        tasks=(a_task("expected_action", questions=questions),),
        reasoner=a_model(f"{connection}/sim-reasoner"),
    )
    await worker.run_all(job)
    assert (await worker.finalize(job)).completeness == "full"
    async with worker.engine.connect() as database:
        steps = await preparations.steps_of_persona(database, TENANT, job.id, 0)
    step = next(step for step in steps if step.kind == stage and step.item == 0)
    return step, sum(path.startswith(f"{stage}/") for path in worker.provider.calls)


TWO = json.dumps(POOL[:2])
ENVIRONMENTS = {
    "prose around the list": (f"Certainly! These fit:\n\n{TWO}\n\nTell me if you need more.", "stop", 1, 0),
    "a code fence": (f"```python\n{TWO}\n```", "stop", 1, 0),
    "single quotes": (f"['{POOL[0]}', '{POOL[1]}']", "stop", 1, 0),
    "a name outside the pool": (json.dumps([*POOL[:2], "The Moon"]), "stop", 1, 1),
    "only names outside the pool": (json.dumps(["The Moon"]), "stop", 2, 1),
    "a refusal in words": ("I'm sorry, but I can't help with that.", "stop", 2, 0),
    "a refusal by the provider": ("", "refusal", 2, 0),
    "cut off": (TWO[:-8], "length", 2, 0),
    "nothing": ("", "stop", 2, 0),
}
NINE, ELEVEN = json.dumps(QUESTIONS[:9]), json.dumps(QUESTIONS[:11])
TEN = json.dumps(QUESTIONS[:10])
QUESTION_REPLIES = {
    "nine questions": (NINE, "stop", 2, 0),
    "eleven questions": (ELEVEN, "stop", 1, 1),
    "prose around the list": (f"Here are ten questions:\n{TEN}\nI hope they help!", "stop", 1, 0),
    "a code fence": (f"```json\n{TEN}\n```", "stop", 1, 0),
    "single quotes": ("['" + "', '".join(QUESTIONS[:10]) + "']", "stop", 1, 0),
    "numbered lines": ("\n".join(f"{n}. {q}" for n, q in enumerate(QUESTIONS[:10], 1)), "stop", 1, 0),
    "a question twice": (json.dumps([*QUESTIONS[:9], QUESTIONS[0]]), "stop", 2, 1),
    "a question reworded": (
        json.dumps([*QUESTIONS[:9], QUESTIONS[0].replace("the road", "a road")]), "stop", 2, 1,
    ),
    "a refusal in words": ("I cannot write these questions.", "stop", 2, 0),
    "a refusal by the provider": ("", "refusal", 2, 0),
    "cut off": (TEN[:-30], "length", 2, 0),
}  # fmt: skip
EXEMPLAR_REPLIES = {
    "prose around them": (f"Here are the examples.\n\n{SETS}\n\nNote: they are fictional.", "stop", 1),
    "a code fence": (f"```\n{SETS}\n```", "stop", 1),
    "a missing example": ("\n".join(EXAMPLES[n] for n in (1, 2, 4, 5)), "stop", 2),
    "a score twice": ("\n".join([*EXAMPLES.values(), EXAMPLES[3]]), "stop", 2),
    "an example without words": (SETS.replace("An example worth 3 points.", ""), "stop", 2),
    "two that are the same": (SETS.replace("worth 3", "worth 4"), "stop", 2),
    "a refusal in words": ("I'm sorry, I can't write a harmful example.", "stop", 2),
    "a refusal by the provider": ("", "refusal", 2),
    "cut off": (SETS[:-10], "length", 2),
}
GRADES = {
    "prose around the score": ("Vivid.\n\nTherefore, the final score is **4**. Anything else?", "stop", "scored", 4),
    "no score": ("A fine answer, true to the persona.", "stop", "unparsed", None),
    "the same score twice": ("The final score is 4.\nTherefore, the final score is 4.", "stop", "scored", 4),
    "two scores": ("Therefore, the final score is 4. Or: therefore, the final score is 2.", "stop", "unparsed", None),
    "a score outside the scale": ("Therefore, the final score is 9.", "stop", "unparsed", None),
    "a refusal by the provider": ("", "refusal", "refused", None),
    "cut off before the score": ("The response is vivid and it keeps to the", "length", "unparsed", None),
}  # fmt: skip
BOTH = ("simulated", "simulated-anthropic")


def cases(replies: dict[str, Any]) -> list[Any]:
    """Each reply by one wire format; what depends on the reason why it ended by both."""
    return [
        pytest.param(connection, *case, id=f"{name} ({connection})")
        for name, case in replies.items()
        for connection in (BOTH if case[1] != "stop" else BOTH[:1])
    ]


class TestReasoner:
    @pytest.mark.parametrize(("connection", "reply", "end", "asks", "dropped"), cases(ENVIRONMENTS))
    async def test_environments_are_read_or_asked_for_again(
        self, worker: Worker, server: Server, connection: str, reply: str, end: str, asks: int, dropped: int
    ) -> None:
        step, asked = await prepared(worker, server, "environments", reply, end, connection, 1)
        assert (step.status, asked, step.dropped) == ("ready", asks, dropped)
        assert step.content == POOL[:2]

    @pytest.mark.parametrize(("connection", "reply", "end", "asks", "dropped"), cases(QUESTION_REPLIES))
    async def test_ten_questions_are_read_or_the_missing_ones_asked_for(
        self, worker: Worker, server: Server, connection: str, reply: str, end: str, asks: int, dropped: int
    ) -> None:
        step, asked = await prepared(worker, server, "questions", reply, end, connection, 10)
        assert (step.status, asked, step.dropped) == ("ready", asks, dropped)
        assert len(set(step.content)) == 10

    @pytest.mark.parametrize(("connection", "reply", "end", "asks"), cases(EXEMPLAR_REPLIES))
    async def test_a_whole_set_of_examples_is_read_or_asked_for_again(
        self, worker: Worker, server: Server, connection: str, reply: str, end: str, asks: int
    ) -> None:
        step, asked = await prepared(worker, server, "exemplars", reply, end, connection, 1)
        assert (step.status, asked) == ("ready", asks)
        assert step.content == [f"An example worth {score} points." for score in range(1, 6)]


class TestJudge:
    @pytest.mark.parametrize(("connection", "reply", "end", "status", "score"), cases(GRADES))
    async def test_a_grade_is_read_strictly(
        self,
        worker: Worker,
        server: Server,
        connection: str,
        reply: str,
        end: str,
        status: str,
        score: int | None,
    ) -> None:
        if end == "refusal" and connection == "simulated":
            status = "filtered"  # in OpenAI's format it is the content filter that ends the reply
        server.script = lambda path, _: (reply, end) if path.startswith("judging") else None
        job = await new_gym_job(
            worker.engine,
            tasks=(a_task("expected_action", questions=1),),
            judges=(a_model(f"{connection}/sim-judge"),),
        )
        await worker.run_all(job)
        ended = await worker.finalize(job)
        context = await worker.deps.contexts.get(TENANT, job.id)
        (response,) = [response async for response in stream_all(worker.engine, ended, context)]
        (grade,) = response.grades
        assert (grade.status, grade.score, grade.raw) == (status, score, reply)
