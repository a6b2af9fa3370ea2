"""Sentences judged again in other orders, on a real database: what is asked and kept, and what a crash or a retry costs."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.request import JudgingIn, OrderCheckIn
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.services.jobs.control import retry_job
from tests.integration.jobs import TENANT, execute, new_job, scalar
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_response

pytestmark = pytest.mark.usefixtures("looks_often")

TEXT = "I stay at home. I read alone. I like it."
SENTENCES, JUDGES = 3, 2
READINGS = SENTENCES * JUDGES * 3
WORDS = "Moderately introverted"
NO_NUMBER = "It is hard to tell."


@dataclass
class Reader(Provider):
    """Finds every sentence moderately introverted, and answers with the number that stands before these words."""

    text: str = TEXT
    rambles: bool = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        if self.rambles and not request.turns:
            return ChatReply(NO_NUMBER, FinishReason.STOP, Usage(10, 4))
        found = re.search(rf"(\d)\) {WORDS}", request.user)
        assert found is not None
        return ChatReply(found[1], FinishReason.STOP, Usage(10, 4))


@pytest.fixture
def provider() -> Reader:
    return Reader()


async def checked_essay(engine: AsyncEngine, text: str = TEXT) -> JobRow:
    return await new_job(
        engine,
        models=(),
        instructions=None,
        responses=(a_response("E-low", "essay", text),),
        judges=(a_model("simulated/sim-judge"), a_model("simulated/sim-judge-harsh")),
        judging=JudgingIn(order_check=OrderCheckIn(share=1.0)),
    )


async def results(engine: AsyncEngine, worker: Worker, job: JobRow) -> dict[str, Any]:
    await worker.finalize(job)
    async with engine.connect() as connection:
        found: dict[str, Any] = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    return found


async def test_each_reading_is_kept_with_the_score_that_its_number_stood_for(
    engine: AsyncEngine, worker: Worker, provider: Reader
) -> None:
    job = await checked_essay(engine)
    await worker.run_all(job)
    assert len(provider.calls) == len(set(provider.calls)) == SENTENCES * JUDGES + READINGS
    kept = await execute(engine, "SELECT judge, score, raw FROM second_verdicts ORDER BY judge")
    assert {row.score for row in kept} == {2}
    assert {row.judge for row in kept} == {2, 3, 4, 5, 6, 7}
    assert {row.raw for row in kept if row.judge < 6} == {"2"}
    assert {row.raw for row in kept if row.judge >= 6} != {"2"}  # shuffled
    found = await results(engine, worker, job)
    assert found["completeness"] == "full"
    rows = [row for row in found["order_check"]["agreement"] if row["dimension"] is None]
    assert [(row["order"], row["sentences"], row["exact_agreement"]["value"]) for row in rows] == [
        (order, SENTENCES, 1.0) for _ in range(JUDGES) for order in ("repeated", "reversed", "shuffled")
    ]


async def test_an_unreadable_reading_is_asked_for_once_more_in_its_order(
    engine: AsyncEngine, worker: Worker, provider: Reader
) -> None:
    provider.rambles = True
    job = await checked_essay(engine)
    await worker.run_all(job)
    assert len(set(provider.calls)) == len(provider.calls) == 2 * (SENTENCES * JUDGES + READINGS)
    assert sum(path.startswith("repairing/0/checking/") for path in provider.calls) == READINGS
    kept = await execute(
        engine, "SELECT score, raw, unread, repair_raw FROM second_verdicts WHERE judge >= 6"
    )
    assert {(row.score, row.raw, row.unread) for row in kept} == {(2, NO_NUMBER, "no_answer")}
    assert {row.repair_raw for row in kept} != {"2"}  # shuffled
    assert (await results(engine, worker, job))["completeness"] == "full"


async def test_a_refusal_is_not_judged_again(engine: AsyncEngine, worker: Worker, provider: Reader) -> None:
    job = await checked_essay(engine, "I'm sorry, but I can't help with that.")
    await worker.run_all(job)
    assert provider.calls == []
    found = await results(engine, worker, job)
    assert found["order_check"] == {"share": 1.0, "responses": 0, "agreement": []}


async def test_what_a_dead_worker_recorded_is_not_asked_again(
    engine: AsyncEngine, worker: Worker, provider: Reader
) -> None:
    job = await checked_essay(engine)
    await worker.run_all(job)
    before = set(provider.calls)
    await execute(engine, "DELETE FROM second_verdicts WHERE unit = 1 AND judge IN (3, 6)")
    await execute(engine, "DELETE FROM verdicts WHERE unit = 2 AND judge = 0")
    await execute(engine, "UPDATE shards SET done = false")
    await execute(engine, "UPDATE jobs SET status = 'running'")
    provider.calls.clear()
    await worker.run_all(job)
    assert sorted(provider.calls) == ["checking/0/0/0/1/0/3", "checking/0/0/0/1/0/6", "judging/0/0/0/2/0/0"]
    assert set(provider.calls) <= before
    assert await scalar(engine, "SELECT count(*) FROM second_verdicts") == READINGS


async def test_a_retry_asks_again_for_readings_that_failed(
    engine: AsyncEngine, worker: Worker, provider: Reader
) -> None:
    job = await checked_essay(engine)
    await worker.run_all(job)
    await execute(
        engine, "UPDATE second_verdicts SET status = 'failed', score = NULL WHERE unit = 0 AND judge = 5"
    )
    await execute(engine, "UPDATE shards SET verdicts_answered = verdicts_answered - 1, verdicts_failed = 1")
    assert (await results(engine, worker, job))["completeness"] == "partial"
    provider.calls.clear()
    await retry_job(worker.control, TENANT, job.id)
    await worker.run_all(job)
    assert provider.calls == ["checking/0/0/0/0/0/5"]
    assert (await results(engine, worker, job))["completeness"] == "full"
