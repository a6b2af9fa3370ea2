"""A model that refuses the system role: the job stops at once, and runs with the persona in the user's message."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.providers.failure import NO_SYSTEM_MESSAGE
from app.llm.connections.connections import load_connections
from app.llm.gateway import Gateway
from app.services.results.manifest import deviations
from tests.integration.engine import engine
from tests.integration.jobs import TENANT, new_job
from tests.integration.llm.provider_replies import NO_SYSTEM, choice
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.integration.services.scheduling.test_run_shard import Worker
from tests.integration.wire.recorder import ASKS_FOR_A_SCORE
from tests.integration.wire.test_bad_replies import OverTheWire
from tests.job_requests import a_model

__all__ = ["engine"]

REFUSAL = NO_SYSTEM["llama.cpp: no system message"][1]


def gemma(seen: Seen) -> Answer:
    """The reply of a model whose template raises an error on the system role."""
    if any(message["role"] == "system" for message in seen.json()["messages"]):
        return REFUSAL
    return choice(content="2" if ASKS_FOR_A_SCORE in seen.body else "I stay at home.")


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider() as running:
        running.script = gemma
        yield running


@pytest.fixture
async def worker(engine: AsyncEngine, stub: StubProvider) -> AsyncIterator[Worker]:
    gateway = Gateway(load_connections(None, {}, stub.url))
    made = Worker(engine, OverTheWire(gateway=gateway))
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made
    await gateway.close()


async def test_the_job_stops_at_once_and_names_the_remedy(worker: Worker, stub: StubProvider) -> None:
    job = await new_job(worker.engine)
    await worker.run_all(job)
    ended = await worker.finalize(job)
    assert (ended.status, ended.status_reason) == ("failed", NO_SYSTEM_MESSAGE)
    assert ended.error is not None
    assert '"system": "in_user_turn"' in ended.error["remedy"]
    assert len(stub.seen) == 1


async def test_the_persona_in_the_users_message_is_taken_and_named(
    worker: Worker, stub: StubProvider
) -> None:
    job = await new_job(worker.engine, models=(a_model("simulated/sim-faithful", system="in_user_turn"),))
    await worker.run_all(job)
    ended = await worker.finalize(job)
    assert (ended.status, ended.completeness) == ("completed", "full")
    written = [seen.json()["messages"] for seen in stub.seen if ASKS_FOR_A_SCORE not in seen.body]
    for (message,) in written:
        persona, task = message["content"].split("\n\n", 1)
        assert persona.startswith("You are")
        assert task
    context = await worker.deps.contexts.get(TENANT, job.id)
    found = deviations(context.spec, context.cells)
    assert sum("at the head of the user's message" in one for one in found) == 1
