import asyncio

import pytest

from app.domain.model import ChatReply, ChatRequest, FinishReason, Model
from app.ports import FailureKind, ModelCallError
from app.services.abandonable_chat import AbandonableChat

REQUEST = ChatRequest(Model("writer", "simulated", "writer"), None, "Speak.", "job/a1", 60.0)
REPLY = ChatReply("I stay in.", FinishReason.STOP, None)


class Hanging:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()

    async def complete(self, request: ChatRequest) -> ChatReply:
        await self.answer.wait()
        return REPLY


class TestAbandonedCall:
    async def test_counts_as_made_and_perhaps_as_paid(self) -> None:
        chat = AbandonableChat(Hanging())
        calls = [asyncio.create_task(chat.complete(REQUEST)) for _ in range(3)]
        await asyncio.sleep(0)
        assert chat.abandon() == 3
        for call in calls:
            with pytest.raises(ModelCallError) as caught:
                await call
            assert (caught.value.code, caught.value.kind) == ("abandoned", FailureKind.RETRY)
            assert caught.value.maybe_paid
            assert not call.cancelled()

    async def test_one_that_was_answered_is_not_among_them(self) -> None:
        provider = Hanging()
        provider.answer.set()
        chat = AbandonableChat(provider)
        assert await chat.complete(REQUEST) is REPLY
        assert chat.abandon() == 0

    async def test_being_cancelled_by_others_is_another_matter(self) -> None:
        chat = AbandonableChat(Hanging())
        call = asyncio.create_task(chat.complete(REQUEST))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
