"""Anthropic's Message Batches: https://platform.claude.com/docs/en/build-with-claude/batch-processing."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from anthropic._decoders.jsonl import AsyncJSONLDecoder
from anthropic.types.messages import MessageBatch

from app.domain.model import ChatReply, ChatRequest
from app.llm import batch_wire, errors, wire
from app.llm.anthropic_chat import AnthropicChat
from app.llm.batch_wire import asking
from app.llm.connections import Connection
from app.llm.keyless import keyless
from app.llm.transports.sdk import guarded, http_client
from app.ports import BatchTooLargeError, ModelCallError

MOST_BYTES = 60_000_000
"""Of a batch, which is in memory as a whole; Anthropic takes 256 MB."""

_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that each type of error has where it answers a call of its own; a batch does not name it."""


class AnthropicBatches:
    """The batch endpoints of one connection of kind ``anthropic``; to be built on the loop that it runs on."""

    def __init__(self, connection: Connection) -> None:
        self._key = connection.api_key
        transport = guarded(connection.guard)
        self._client = AnthropicChat.client(
            connection, http_client(connection.api_key, transport, bounded=False)
        )

    def encode(self, request: ChatRequest) -> str:
        """See :class:`app.ports.BatchModel`; likewise the others."""
        return batch_wire.encoded(AnthropicChat.body(request))

    def decode(self, answer: str) -> ChatReply:
        """The reply in a line of the results."""
        result = wire.mapping(batch_wire.object_of(answer).get("result"))
        kind = result.get("type")
        if kind == "succeeded":
            return keyless(AnthropicChat.read(wire.mapping(result.get("message")), {}, self._key), self._key)
        if kind == "errored":
            # The error is an answer's body, with the error object in it.
            body = wire.mapping(result.get("error"))
            name = wire.mapping(body.get("error")).get("type")
            raise errors.refused(
                _STATUSES.get(str(name), HTTPStatus.INTERNAL_SERVER_ERROR), body, {}, self._key
            )
        code = f"batch_{kind}" if kind in {"canceled", "expired"} else "batch_unanswered"
        raise errors.unanswered(code, "the batch ended without it")

    async def upload(self, calls: AsyncIterator[tuple[str, str]]) -> Callable[[str], Awaitable[str]]:
        """Gathers the calls; there is nothing to upload before the batch itself."""
        body = bytearray(b'{"requests": [')
        async for custom_id, request in calls:
            body += f'{{"custom_id": {json.dumps(custom_id)}, "params": {request}}},'.encode()
            if len(body) > MOST_BYTES:
                raise BatchTooLargeError(f"the calls take more than {MOST_BYTES:,} bytes", for_now=False)

        async def submit(_name: str) -> str:
            try:
                async with asking(self._key, AnthropicChat.faults, seconds=batch_wire.UPLOAD_SECONDS):
                    # As the SDK's `create` posts it, which would first walk through every message of every call.
                    batch = await self._client.post(
                        "/v1/messages/batches", cast_to=MessageBatch, content=bytes(body[:-1] + b"]}")
                    )
            except ModelCallError as error:
                if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                    raise BatchTooLargeError(str(error), for_now=False) from None
                raise
            return batch.id

        return submit

    async def find(self, name: str, calls: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002 - there are no names
        """The oldest batch since then with as many calls that is none of the known ones.

        Batches carry nothing of ours but the calls' ids, which are shown with the results only.
        """
        found: MessageBatch | None = None
        async with asking(self._key, AnthropicChat.faults):
            async for batch in self._client.messages.batches.list(limit=100):
                if batch.created_at < since:
                    break
                counts = batch.request_counts
                total = (
                    counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
                )
                if total == calls and batch.id not in known:
                    found = batch
        return None if found is None else found.id

    async def has_ended(self, provider_id: str) -> bool:
        """Whether a batch's results are there."""
        async with asking(self._key, AnthropicChat.faults):
            batch = await self._client.messages.batches.retrieve(provider_id)
        return batch.processing_status == "ended"

    async def cancel(self, provider_id: str) -> None:
        """Asks for a cancellation; one that comes too late is no error."""
        try:
            async with asking(self._key, AnthropicChat.faults):
                await self._client.messages.batches.cancel(provider_id)
        except ModelCallError as error:
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT}:
                raise

    async def answers(self, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """The lines of the results.

        From the documented path, not from the URL that the batch names: the key goes to the connection's host only.
        """
        async with asking(self._key, AnthropicChat.faults, seconds=None):
            results = await self._client.get(
                f"/v1/messages/batches/{provider_id}/results",
                cast_to=AsyncJSONLDecoder[Any],
                stream=True,
            )
            async for line in batch_wire.lines(results.http_response.aiter_bytes()):
                for answer in batch_wire.answers_in(line, self._key):
                    yield answer

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.close()
