"""The batch endpoints of all connections, each in its wire format."""

import asyncio
import contextlib
import importlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Union

from app.domain.providers.model import ChatReply, ChatRequest
from app.llm.connections.connections import Connection, Connections
from app.llm.connections.retired import Retired
from app.llm.gateway import Fetch, fetch_connection, no_other
from app.llm.replies import errors
from app.llm.replies.usage import billed_usage
from app.ports import BATCH_LOST, ModelCallError, UploadedBatch

if TYPE_CHECKING:
    from app.llm.batches.anthropic import AnthropicBatches
    from app.llm.batches.openai import OpenAIBatches

Endpoints = Union["OpenAIBatches", "AnthropicBatches"]


class BatchGateway:
    """A ``BatchModel`` over all connections; it belongs to the loop on which it is first used.

    Batches go through the official SDKs: a request for thousands of calls may take its time.
    """

    def __init__(self, connections: Connections, fetch: Fetch = no_other) -> None:
        self._connections = connections
        self._fetch = fetch
        self._endpoints: dict[str, Endpoints] = {}
        self._stale: set[str] = set()
        self._users: Counter[Endpoints] = Counter()
        self._retired: Retired[Endpoints] = Retired(self._users.__contains__)
        self._preparing = asyncio.Lock()

    async def prepare(self, connection: str, tenant: str) -> None:
        """Imports what a connection needs, on a thread, and makes its client.

        Raises:
            ModelCallError: If this tenant has no such connection.
        """
        if self._is_ready(connection, tenant):
            return
        async with self._preparing:
            if not self._is_ready(connection, tenant):
                found = self._connections.usable(connection, tenant)
                if found is None:
                    found = await fetch_connection(connection, tenant, self._fetch)
                await asyncio.to_thread(importlib.import_module, f"{__package__}.{found.kind}")
                if connection in self._endpoints:
                    self._retired.add(self._endpoints[connection])
                self._endpoints[connection] = _endpoints(found)
                self._stale.discard(connection)

    def renew(self, connection: str) -> None:
        """Has a connection be looked up anew when it is next prepared; whoever is using it goes on."""
        self._stale.add(connection)

    def _is_ready(self, connection: str, tenant: str) -> bool:
        is_made = connection in self._endpoints and connection not in self._stale
        return is_made and self._connections.usable(connection, tenant) is not None

    def encode(self, request: ChatRequest) -> str:
        """See :class:`app.ports.BatchModel`, for all of these; their connections have been prepared."""
        return self._endpoints[request.model.connection].encode(request)

    def decode(self, connection: str, answer: str) -> ChatReply:
        """The reply in what came for one call."""
        if answer == BATCH_LOST:
            lost = {"code": "batch_lost", "message": "its batch is not to be found"}
            raise errors.unanswered(lost, None)
        try:
            return self._endpoints[connection].decode(answer)
        except ModelCallError as error:
            from app.llm.batches.batch_wire import object_of  # noqa: PLC0415 - with the SDKs

            error.charge(billed_usage([object_of(answer)]))
            raise

    async def upload(
        self, connection: str, file_name: str, calls: AsyncIterator[tuple[str, str]]
    ) -> UploadedBatch:
        """Sends, or only keeps, a batch's calls."""
        with self._used(connection) as endpoints:
            return await endpoints.upload(file_name, calls)

    async def delete_file(
        self, connection: str, file_name: str, file_id: str | None, since: datetime
    ) -> bool:
        """Deletes an uploaded file; whether nothing is left of it."""
        with self._used(connection) as endpoints:
            return await endpoints.delete_file(file_name, file_id, since)

    async def find(
        self, connection: str, name: str, calls: int, since: datetime, known: Collection[str]
    ) -> str | None:
        """The id of a batch that may have been submitted without our learning of it."""
        with self._used(connection) as endpoints:
            return await endpoints.find(name, calls, since, known)

    async def has_ended(self, connection: str, provider_id: str) -> bool:
        """Whether all that will be answered in a batch is there."""
        with self._used(connection) as endpoints:
            return await endpoints.has_ended(provider_id)

    async def cancel(self, connection: str, provider_id: str) -> None:
        """Has the provider answer no more calls of a batch."""
        with self._used(connection) as endpoints:
            await endpoints.cancel(provider_id)

    async def answers(self, connection: str, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """Custom ids and answers of a batch that has ended."""
        with self._used(connection) as endpoints:
            async with contextlib.aclosing(endpoints.answers(provider_id)) as answers:
                async for answer in answers:
                    yield answer

    async def close(self) -> None:
        """Closes all connections."""
        await self._retired.close()
        for endpoints in self._endpoints.values():
            await endpoints.close()

    @contextlib.contextmanager
    def _used(self, connection: str) -> Iterator[Endpoints]:
        """Keeps a client open, also one whose connection is changed meanwhile: an upload may take half an hour."""
        endpoints = self._endpoints[connection]
        self._users[endpoints] += 1
        try:
            yield endpoints
        finally:
            self._users[endpoints] -= 1
            if not self._users[endpoints]:
                del self._users[endpoints]


def _endpoints(connection: Connection) -> Endpoints:
    if connection.kind == "anthropic":
        from app.llm.batches.anthropic import AnthropicBatches  # noqa: PLC0415

        return AnthropicBatches(connection)
    from app.llm.batches.openai import OpenAIBatches  # noqa: PLC0415

    return OpenAIBatches(connection)
