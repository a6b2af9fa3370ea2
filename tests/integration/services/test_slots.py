"""A call that gives up just as its turn comes takes nobody's turn with it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.shards import Claim
from app.db.writer import ResultWriter
from app.domain.model import ChatReply, ChatRequest, FinishReason, Model, Stage, Usage
from app.ports import Price
from app.services.batch_writer import BatchWriter
from app.services.model_caller import CallKey, ModelCaller
from app.services.stop_signal import StoppedError, StopReason, StopSignal
from tests.integration.jobs import claimed, new_job
from tests.integration.no_limits import NoLimits

MODEL = Model("writer", "simulated", "writer")
SLOTS = 3
ROUNDS = 300


@dataclass
class Provider(NoLimits):
    """Answers when it is told to; lets every call go."""

    answer: asyncio.Event = field(default_factory=asyncio.Event)
    on_wire: int = 0
    most: int = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.on_wire += 1
        self.most = max(self.most, self.on_wire)
        await self.answer.wait()
        self.on_wire -= 1
        return ChatReply("I stay in.", FinishReason.STOP, Usage(10, 4))

    async def acquire(self, connection: str, model: str, tokens: int) -> None:
        await asyncio.sleep(0)

    def price(self, connection: str, model: str, usage: Usage) -> Price:
        return Price(None, None)


@pytest.fixture
async def claim(engine: AsyncEngine) -> Claim:
    return await claimed(engine, (await new_job(engine)).id)


@pytest.fixture
async def writer(engine: AsyncEngine) -> AsyncIterator[BatchWriter]:
    made = BatchWriter(ResultWriter(engine))
    async with made.running():
        yield made


class TestSlots:
    async def test_all_are_there_after_hundreds_of_stops_at_every_moment(
        self, claim: Claim, writer: BatchWriter
    ) -> None:
        provider = Provider()
        caller = ModelCaller(
            chat=provider,
            limiter=provider,
            prices=provider,
            writer=writer,
            attempts=1,
            deadline_seconds=60.0,
            in_flight=lambda *_: SLOTS,
        )

        def call(stop: StopSignal, run: int) -> asyncio.Task[ChatReply]:
            key = CallKey(Stage.GENERATION, run=run, item=0)
            return asyncio.create_task(caller.call(MODEL, None, "Speak.", key=key, claim=claim, stop=stop))

        for moment in range(ROUNDS):
            provider.answer.clear()
            first, then = StopSignal(), StopSignal()
            flying = [call(first, run) for run in range(SLOTS)]
            waiting = [call(then, run) for run in range(SLOTS, 3 * SLOTS)]
            for _ in range(10):
                await asyncio.sleep(0)
            provider.answer.set()
            for _ in range(moment % 12):  # from before their turn comes to after they have taken it
                await asyncio.sleep(0)
            then.set(StopReason.JOB_INACTIVE)
            outcomes = await asyncio.gather(*flying, *waiting, return_exceptions=True)
            assert all(isinstance(each, (ChatReply, StoppedError)) for each in outcomes), outcomes

        provider.answer.clear()
        provider.most = 0
        last = [call(StopSignal(), run) for run in range(2 * SLOTS)]
        while provider.on_wire < SLOTS:  # noqa: ASYNC110 - for ever, if a slot has leaked
            await asyncio.sleep(0.001)
        provider.answer.set()
        await asyncio.wait_for(asyncio.gather(*last), 60)
        assert provider.most == SLOTS
