"""Follow-up requests to judges whose reply could not be read, on a real database."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.budgets import read_account
from app.db.jobs.jobs import JobRow
from app.domain.jobs.budget import Budget
from app.domain.jobs.request import JudgingIn
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Message, Usage
from app.ports import FailureKind, ModelCallError
from app.services.job_context import JobContexts
from app.services.jobs.control import cancel_job, change_budget, resume_job
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, execute, new_job, scalar
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_response

pytestmark = pytest.mark.usefixtures("looks_often")

UNREADABLE = "It is hard to say."
NO_ANSWER = ModelCallError("no", kind=FailureKind.ITEM, code="bad_request", status=400, unexplained=True)
FIRST, FOLLOW_UP = "judging/0/0/0/0/0/0", "repairing/0/judging/0/0/0/0/0"


@dataclass
class Rambler(Provider):
    """Replies without a score at first, and with ``repaired`` when asked once more."""

    repaired: str = "2"
    conversations: list[list[Message]] = field(default_factory=list)
    broken: bool = False
    broken_after: int | None = None
    """Number of follow-ups after which the next ones fail."""
    obeys: bool = True

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        if not request.turns:
            return ChatReply(UNREADABLE, FinishReason.STOP, Usage(10, 4))
        self.conversations.append(request.messages)
        if self.broken or (self.broken_after is not None and len(self.conversations) > self.broken_after):
            raise NO_ANSWER
        key = key_word(request.messages[-1])
        said = f"{key}\n{self.repaired}" if key and self.obeys else self.repaired
        return ChatReply(said, FinishReason.STOP, Usage(10, 1))


def key_word(request: Message) -> str:
    """Return the key word that a follow-up of the hardened protocol asks for."""
    found = re.search(r"the word (\S+) and nothing else", request.content)
    return found[1] if found else ""


@pytest.fixture
def provider() -> Rambler:
    return Rambler()


async def one_sentence(
    engine: AsyncEngine, *, repair: bool = True, text: str = "I stay at home.", **changes: Any
) -> JobRow:
    return await new_job(
        engine,
        models=(),
        instructions=None,
        responses=(a_response("E-low", "essay", text),),
        judges=(a_model("simulated/sim-judge"),),
        judging=JudgingIn(repair=repair),
        **changes,
    )


async def verdict(engine: AsyncEngine) -> tuple[object, ...]:
    (row,) = await execute(engine, "SELECT status, score, raw, unread, repair_raw FROM verdicts")
    return tuple(row)


async def test_an_unreadable_reply_is_followed_by_a_request_in_the_same_conversation(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    await worker.run_all(await one_sentence(engine))
    assert provider.calls == [FIRST, FOLLOW_UP]
    (said,) = provider.conversations
    assert [message.role for message in said] == ["user", "assistant", "user"]
    assert said[1].content == UNREADABLE
    assert "1, 2, 3, 4, 5, 9" in said[2].content
    assert await verdict(engine) == ("scored", 2, UNREADABLE, "no_answer", "2")
    assert await scalar(engine, "SELECT count(*) FROM unread_replies") == 0
    stages = await execute(engine, "SELECT stage, outcome FROM calls ORDER BY started_at")
    assert [tuple(row) for row in stages] == [("judging", "ok"), ("repairing", "ok")]


async def test_a_second_unreadable_reply_stays_unparsed(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    provider.repaired = "I cannot decide between them."
    await worker.run_all(await one_sentence(engine))
    assert await verdict(engine) == ("unparsed", None, UNREADABLE, "no_answer", provider.repaired)


async def test_a_follow_up_that_fails_leaves_the_reply_unparsed(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    provider.broken = True
    job = await one_sentence(engine)
    await worker.run_all(job)
    assert await verdict(engine) == ("unparsed", None, UNREADABLE, "no_answer", None)
    assert await scalar(engine, "SELECT error FROM verdicts") == "bad_request: no"
    [response], _ = await read_page(
        engine, job, await JobContexts(engine).get(TENANT, job.id), ResponseFilter(), after=None, limit=1
    )
    [shown] = response.units[0].verdicts
    assert (shown.raw, shown.error) == (UNREADABLE, "bad_request: no")


async def test_follow_ups_that_all_fail_do_not_stop_the_job(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    provider.broken = True
    job = await one_sentence(engine, text=" ".join(f"I like {number} cats." for number in range(15)))
    await worker.run_all(job)
    assert (await worker.job(job)).status is JobStatus.FINALIZING
    assert await scalar(engine, "SELECT count(*) FROM verdicts WHERE status = 'unparsed'") == 15
    assert len(provider.conversations) == 15


async def test_a_job_can_turn_it_off(engine: AsyncEngine, worker: Worker, provider: Rambler) -> None:
    await worker.run_all(await one_sentence(engine, repair=False))
    assert provider.calls == [FIRST]
    assert await verdict(engine) == ("unparsed", None, UNREADABLE, "no_answer", None)


async def test_a_worker_that_takes_over_asks_only_the_follow_up(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    job = await one_sentence(engine)
    await execute(
        engine,
        "INSERT INTO unread_replies (cell_id, run, path, tenant, raw, finish_reason)"
        f" SELECT id, 0, '{FIRST}', tenant, '{UNREADABLE}', 'stop' FROM cells",
    )
    await execute(engine, "UPDATE shards SET lease_token = 1")  # of an earlier claim
    await worker.run_all(job)
    assert provider.calls == [FOLLOW_UP]
    assert await verdict(engine) == ("scored", 2, UNREADABLE, "no_answer", "2")


async def test_a_budget_that_ends_before_the_follow_up_pauses_the_job(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    job = await one_sentence(engine, budget=Budget(calls=1))
    await worker.run_all(job)
    paused = await worker.job(job)
    assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "budget_exhausted")
    assert provider.calls == [FIRST]
    await change_budget(worker.control, TENANT, job.id, Budget(calls=2))
    await resume_job(worker.control, TENANT, job.id)
    await worker.run_all(job)
    assert provider.calls == [FIRST, FOLLOW_UP]
    assert await verdict(engine) == ("scored", 2, UNREADABLE, "no_answer", "2")
    async with engine.connect() as connection:
        account = await read_account(connection, TENANT, job.id)
    assert account is not None
    assert (account.spent.calls, account.reserved.calls) == (2, 0)


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_follow_up_of_the_hardened_protocol_asks_for_the_key_word(
    engine: AsyncEngine, worker: Worker, provider: Rambler, obeys: bool
) -> None:
    provider.obeys = obeys
    await worker.run_all(await one_sentence(engine, protocol="hardened"))
    (said,) = provider.conversations
    assert [message.role for message in said] == ["system", "user", "assistant", "user"]
    key = key_word(said[-1])
    assert key in said[0].content
    status, score, _, _, second = await verdict(engine)
    assert (status, score, second) == ("scored", 2, f"{key}\n2" if obeys else "2")
    assert await scalar(engine, "SELECT suspicion IS NULL FROM verdicts") is obeys


@dataclass
class RamblingGrader(Reasoner):
    """Grades an answer only when asked once more."""

    broken: bool = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        if self.calls[-1].startswith("judging"):
            return ChatReply(UNREADABLE, FinishReason.STOP, Usage(10, 4))
        if self.calls[-1].startswith("repairing"):
            assert "Therefore, the final score is" in request.messages[-1].content
            if self.broken:
                raise NO_ANSWER
            return ChatReply("Therefore, the final score is 4.", FinishReason.STOP, Usage(10, 9))
        return reply


async def test_an_unreadable_grade_is_asked_for_once_more(engine: AsyncEngine) -> None:
    worker = Worker(engine, provider := RamblingGrader())
    async with worker.deps.writer.running(), worker.deps.leases.running():
        job = await new_gym_job(engine)
        await worker.run_all(job)
    assert provider.stages()["repairing"] == provider.stages()["judging"] == 2
    grades = await execute(engine, "SELECT DISTINCT status, score, raw, unread, repair_raw FROM grades")
    assert [tuple(row) for row in grades] == [
        ("scored", 4, UNREADABLE, "no_answer", "Therefore, the final score is 4.")
    ]
    await worker.finalize(job)
    async with engine.connect() as connection:
        found = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    assert found["repairs"] == [
        {"judge": "simulated/sim-judge", "unread": 2, "repaired": 2, "unparsed": 0, "failed": 0}
    ]


async def test_a_grade_whose_follow_up_fails_is_counted_as_failed(engine: AsyncEngine) -> None:
    worker = Worker(engine, RamblingGrader(broken=True))
    async with worker.deps.writer.running(), worker.deps.leases.running():
        job = await new_gym_job(engine)
        await worker.run_all(job)
    await worker.finalize(job)
    async with engine.connect() as connection:
        found = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    assert found["repairs_total"] == {"unread": 2, "repaired": 0, "unparsed": 2, "failed": 2}


async def test_a_cancelled_job_keeps_no_reply_for_a_follow_up(engine: AsyncEngine, worker: Worker) -> None:
    job = await one_sentence(engine)
    await execute(
        engine,
        "INSERT INTO unread_replies (cell_id, run, path, tenant, raw, finish_reason)"
        f" SELECT id, 0, '{FIRST}', tenant, '{UNREADABLE}', 'stop' FROM cells",
    )
    await execute(engine, "UPDATE jobs SET started_at = clock_timestamp()")
    await cancel_job(worker.control, TENANT, job.id)
    assert (await worker.finalize(job)).status is JobStatus.CANCELLED
    assert await scalar(engine, "SELECT count(*) FROM unread_replies") == 0


async def test_results_count_unreadable_and_repaired_replies(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    job = await one_sentence(engine)
    await worker.run_all(job)
    await worker.finalize(job)
    async with engine.connect() as connection:
        found = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    assert found["repairs"] == [
        {"judge": "simulated/sim-judge", "unread": 1, "repaired": 1, "unparsed": 0, "failed": 0}
    ]
    assert found["repairs_total"] == {"unread": 1, "repaired": 1, "unparsed": 0, "failed": 0}
    assert found["manifest"]["repair"]["instrument"]["version"] == "v1"
    assert found["manifest"]["repair"]["judges"] == found["repairs"]
    counted = "Judge simulated/sim-judge was asked once more for 1 verdicts and grades: 1 repaired, 0 still unparsed."
    assert counted in found["manifest"]["deviations"]


async def test_results_count_the_follow_ups_that_failed(
    engine: AsyncEngine, worker: Worker, provider: Rambler
) -> None:
    job = await one_sentence(engine, text="I stay at home. I read alone. I like it.")
    provider.broken_after = 1
    await worker.run_all(job)
    await worker.finalize(job)
    async with engine.connect() as connection:
        found = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    assert found["repairs_total"] == {"unread": 3, "repaired": 1, "unparsed": 2, "failed": 2}
    counted = "3 verdicts and grades: 1 repaired, 2 still unparsed (2 of them because the follow-up failed)."
    assert any(counted in each for each in found["manifest"]["deviations"])
