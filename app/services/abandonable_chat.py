"""Calls on the wire that a worker may leave behind when its time to stop is up."""

import asyncio

from app.domain.model import ChatReply, ChatRequest
from app.ports import ChatModel, FailureKind, ModelCallError

ABANDONED = "abandoned"


class AbandonableChat:
    """A chat model whose calls can be given up, all at once and for good: each then counts as made, and perhaps as paid.

    Args:
        chat: Makes the calls.
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._on_wire: set[asyncio.Task[object]] = set()
        self._abandoned = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One attempt; see :class:`app.ports.ChatModel`.

        Raises:
            ModelCallError: As the model does; with the code ``abandoned`` if it was given up.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can call")
        self._on_wire.add(task)
        try:
            return await self._chat.complete(request)
        except asyncio.CancelledError:
            if not self._abandoned:
                raise
            task.uncancel()
            raise ModelCallError(
                "given up when the worker stopped", kind=FailureKind.RETRY, code=ABANDONED, maybe_paid=True
            ) from None
        finally:
            self._on_wire.discard(task)

    def abandon(self) -> int:
        """Gives up every call on the wire; returns how many."""
        self._abandoned = True
        for task in self._on_wire:
            task.cancel()
        return len(self._on_wire)
