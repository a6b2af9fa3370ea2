"""Anthropic's Message Batches: https://platform.claude.com/docs/en/build-with-claude/batch-processing."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from anthropic import AsyncAnthropic
from anthropic._decoders.jsonl import AsyncJSONLDecoder
from anthropic.types.messages import MessageBatch

from app.domain.providers.model import ChatReply
from app.llm.batches import batch_wire
from app.llm.batches.endpoints import BatchEndpoints, too_large
from app.llm.connections.connections import Connection
from app.llm.formats import wire
from app.llm.formats.anthropic import AnthropicChat
from app.llm.replies import errors
from app.llm.replies.redact_key import keyless
from app.llm.replies.transport_reply import Reply
from app.ports import BatchTooLargeError, ModelCallError, UploadedBatch

MOST_BYTES = 60_000_000
"""Of a batch, which is in memory as a whole; Anthropic takes 256 MB."""

_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "api_error": 500,
    **errors.STATUSES_OF_PASSING,
}
"""The HTTP status that each type of error has where it answers a call of its own; a batch does not name it."""


class AnthropicBatches(BatchEndpoints[AsyncAnthropic]):
    """The batch endpoints of one connection of kind ``anthropic``."""

    chat = AnthropicChat

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, AnthropicChat.client)

    def decode(self, answer: str) -> ChatReply:
        """The reply in a line of the results."""
        result = wire.mapping(batch_wire.object_of(answer).get("result"))
        kind = result.get("type")
        if kind == "succeeded":
            received = Reply(HTTPStatus.OK, {}, b"")
            return keyless(
                AnthropicChat.read(wire.mapping(result.get("message")), received, self._key), self._key
            )
        if kind == "errored":
            # The error is an answer's body, with the error object in it.
            body = wire.mapping(result.get("error"))
            name = wire.mapping(body.get("error")).get("type")
            raise errors.refused(
                _STATUSES.get(str(name), HTTPStatus.INTERNAL_SERVER_ERROR), body, {}, self._key
            )
        code = f"batch_{kind}" if kind in {"canceled", "expired"} else "batch_unanswered"
        raise errors.unanswered({"code": code}, None)

    async def upload(self, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:  # noqa: ARG002 - there is no file
        """Gathers the calls; there is nothing to upload before the batch itself."""
        body = bytearray(b'{"requests": [')
        async for custom_id, request in calls:
            body += f'{{"custom_id": {json.dumps(custom_id)}, "params": {request}}},'.encode()
            if len(body) > MOST_BYTES:
                raise BatchTooLargeError(f"the calls take more than {MOST_BYTES:,} bytes", for_now=False)

        async def submit(_name: str) -> str:
            try:
                async with self._asking(batch_wire.UPLOAD_SECONDS):
                    # As the SDK's `create` posts it, which would first walk through every message of every call.
                    batch = await self._client.post(
                        "/v1/messages/batches", cast_to=MessageBatch, content=bytes(body[:-1] + b"]}")
                    )
            except ModelCallError as error:
                raise too_large(error) from None
            return batch.id

        return UploadedBatch(None, submit)

    async def find(self, name: str, calls: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002 - there are no names
        """The oldest batch since then with as many calls that is none of the known ones.

        Batches carry nothing of ours but the calls' ids, which are shown with the results only.
        """
        found: MessageBatch | None = None
        async with self._asking():
            async for batch in self._client.messages.batches.list(limit=100):
                if batch.created_at < since:
                    break
                if _total(batch) == calls and batch.id not in known:
                    found = batch
        return None if found is None else found.id

    async def has_ended(self, provider_id: str) -> bool:
        """Whether a batch's results are there."""
        return (await self._retrieve(provider_id)).processing_status == "ended"

    async def _cancel(self, provider_id: str) -> None:
        await self._client.messages.batches.cancel(provider_id)

    async def answers(self, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """The lines of the results.

        From the documented path, not from the URL that the batch names: the key goes to the connection's host only. A way
        that ends them early without saying so is found out by the count.
        """
        promised = _total(await self._retrieve(provider_id))
        read = 0
        async with self._asking(None):
            results = await self._client.get(
                f"/v1/messages/batches/{provider_id}/results",
                cast_to=AsyncJSONLDecoder[Any],
                stream=True,
            )
            async for line in batch_wire.lines(results.http_response.aiter_bytes()):
                for answer in await batch_wire.answers_in(line, self._key):
                    read += 1
                    yield answer
        batch_wire.check_whole(read, promised)

    async def _retrieve(self, provider_id: str) -> MessageBatch:
        async with self._asking():
            return await self._client.messages.batches.retrieve(provider_id)


def _total(batch: MessageBatch) -> int:
    """How many calls a batch has."""
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
