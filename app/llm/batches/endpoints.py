"""What the batch endpoints of all wire formats have in common."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from http import HTTPStatus
from typing import ClassVar, Generic, TypeVar

import httpx2

from app.domain.providers.model import ChatReply, ChatRequest
from app.llm.batches import batch_wire
from app.llm.connections.connections import Connection
from app.llm.formats.chat import Chat
from app.llm.transports.sdk import Client, guarded, http_client
from app.ports import BatchTooLargeError, ModelCallError, UploadedBatch

SdkClient = TypeVar("SdkClient", bound=Client)


class BatchEndpoints(ABC, Generic[SdkClient]):
    """The batch endpoints of one connection; to be built on the loop that it runs on. See :class:`app.ports.BatchModel`.

    Attributes:
        chat: The direct calls of the same format.
    """

    chat: ClassVar[type[Chat]]

    def __init__(
        self, connection: Connection, make_client: Callable[[Connection, httpx2.AsyncClient], SdkClient]
    ) -> None:
        self._key, self._guard = connection.api_key, connection.guard
        transport = guarded(connection.guard)
        self._client = make_client(connection, http_client(self._key, transport, bounded=False))

    def encode(self, request: ChatRequest) -> str:
        """A call as JSON text."""
        return batch_wire.encoded(self.chat.body(request))

    @abstractmethod
    def decode(self, answer: str) -> ChatReply:
        """The reply in what came for one call."""

    @abstractmethod
    async def upload(self, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:
        """Sends, or only keeps, a batch's calls."""

    async def delete_file(self, name: str, file_id: str | None, since: datetime) -> bool:  # noqa: ARG002 - for those that have files
        """Whether nothing is left of an uploaded file; so it is where there never was one."""
        return True

    @abstractmethod
    async def find(self, name: str, calls: int, since: datetime, known: Collection[str]) -> str | None:
        """The id of a batch that may have been submitted without our learning of it."""

    @abstractmethod
    async def has_ended(self, provider_id: str) -> bool:
        """Whether all that will be answered in a batch is there."""

    async def cancel(self, provider_id: str) -> None:
        """Asks for a cancellation; one that comes too late is no error."""
        try:
            async with self._asking():
                await self._cancel(provider_id)
        except ModelCallError as error:
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT}:
                raise

    @abstractmethod
    async def _cancel(self, provider_id: str) -> None:
        """The request for a cancellation."""

    @abstractmethod
    def answers(self, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """Custom ids and answers of a batch that has ended."""

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.close()

    def _asking(self, seconds: float | None = batch_wire.ASK_SECONDS) -> AbstractAsyncContextManager[None]:
        """See :func:`app.llm.batches.batch_wire.asking`."""
        return batch_wire.asking(self._key, self.chat.faults, seconds=seconds)


def too_large(error: ModelCallError) -> Exception:
    """The failure of a submission, told apart by whether fewer calls would do."""
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return BatchTooLargeError(str(error), for_now=False)
    return error
