"""A call that gives up just as its turn comes takes nobody's turn with it."""

import asyncio
from dataclasses import dataclass

from app.domain.providers.model import ChatReply, ChatRequest
from app.services.execution.stop_signal import StoppedError, StopReason
from tests.integration.services.execution.test_model_caller import REPLY, Bench, Script, bench

__all__ = ["bench"]
ROUNDS = 300
WAITING = 5


@dataclass
class Provider(Script):
    """Answers when it is told to."""

    answer: asyncio.Event | None = None
    on_wire: int = 0
    most: int = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        assert self.answer is not None
        self.on_wire += 1
        self.most = max(self.most, self.on_wire)
        await self.answer.wait()
        self.on_wire -= 1
        return REPLY


def another(bench: Bench) -> Bench:
    """Another shard in the same process: it shares the model's slot, and is stopped by itself."""
    made = Bench(bench.engine, bench.writer, bench.claim)
    made.callers = bench.callers
    return made


class TestSlot:
    async def test_is_there_after_hundreds_of_stops_at_every_moment(self, bench: Bench) -> None:
        provider = Provider([])
        for moment in range(ROUNDS):
            provider.answer = asyncio.Event()
            flying, waiting = another(bench), another(bench)
            calls = [asyncio.create_task(each.call(provider)) for each in [flying, *[waiting] * WAITING]]
            while not provider.on_wire:  # noqa: ASYNC110 - for ever, if the slot has leaked
                await asyncio.sleep(0)
            provider.answer.set()
            for _ in range(moment % 15):  # from before the next one's turn to after it has been taken
                await asyncio.sleep(0)
            waiting.stop.set(StopReason.JOB_INACTIVE)
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert outcomes[0] is REPLY
            assert all(each is REPLY or isinstance(each, StoppedError) for each in outcomes), outcomes
        assert provider.most == 1
