"""OpenAI's batch endpoints (https://platform.openai.com/docs/guides/batch), and those of every server that has them too."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from datetime import datetime
from http import HTTPStatus
from typing import IO, Literal

from openai.types import Batch
from pydantic import SecretStr

from app.domain.model import ChatReply, ChatRequest
from app.llm import batch_wire, errors, wire
from app.llm.batch_wire import asking
from app.llm.connections import Connection
from app.llm.keyless import keyless
from app.llm.openai_chat import OpenAIChat
from app.llm.transports.sdk import guarded, http_client
from app.ports import BatchRefusedError, BatchTooLargeError, FailureKind, ModelCallError

MOST_BYTES = 190_000_000
"""Of a file; OpenAI takes 200 MB."""

OUR_NAME = "persona_assay_batch"
"""Key of the batches' metadata under which ours have their names."""

_ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_ENQUEUED_LIMIT = "token_limit_exceeded"
"""Code of a batch that was turned down because too many tokens are waiting already, its own included."""

_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class OpenAIBatches:
    """The batch endpoints of one connection of kind ``openai``; to be built on the loop that it runs on."""

    def __init__(self, connection: Connection) -> None:
        self._key = connection.api_key
        transport = guarded(connection.guard)
        self._client = OpenAIChat.client(
            connection, http_client(connection.api_key, transport, bounded=False)
        )

    def encode(self, request: ChatRequest) -> str:
        """See :class:`app.ports.BatchModel`; likewise the others."""
        return batch_wire.encoded(OpenAIChat.body(request))

    def decode(self, answer: str) -> ChatReply:
        """The reply in a line of an output or error file."""
        line = batch_wire.object_of(answer)
        response, fault = wire.mapping(line.get("response")), wire.mapping(line.get("error"))
        status, body = response.get("status_code"), wire.mapping(response.get("body"))
        if status == HTTPStatus.OK:
            headers = {"x-request-id": response.get("request_id") or ""}
            return keyless(OpenAIChat.read(body, headers, self._key), self._key)
        if isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST:
            raise errors.refused(status, body, {}, self._key)
        code = errors.readable(wire.short_text(fault.get("code")) or "batch_unanswered", self._key)
        message = wire.short_text(fault.get("message")) or "the batch ended without it"
        raise errors.unanswered(code, errors.readable(message, self._key))

    async def upload(self, calls: AsyncIterator[tuple[str, str]]) -> Callable[[str], Awaitable[str]]:
        """Uploads a file; a batch of it is made by what is returned."""
        with tempfile.TemporaryFile() as file:
            await _write(file, calls)
            try:
                async with asking(self._key, OpenAIChat.faults, seconds=batch_wire.UPLOAD_SECONDS):
                    uploaded = await self._client.files.create(file=("calls.jsonl", file), purpose="batch")
            except ModelCallError as error:
                if error.status == _TOO_LARGE:
                    raise BatchTooLargeError(str(error), for_now=False) from None
                raise

        async def submit(name: str) -> str:
            async with asking(self._key, OpenAIChat.faults):
                batch = await self._client.batches.create(
                    input_file_id=uploaded.id,
                    endpoint=_ENDPOINT,
                    completion_window="24h",
                    metadata={OUR_NAME: name},
                )
            return batch.id

        return submit

    async def find(self, name: str, calls: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002 - names suffice
        """The batch that carries a name; they are listed newest first."""
        async with asking(self._key, OpenAIChat.faults):
            async for batch in self._client.batches.list(limit=100):
                if batch.created_at < since.timestamp():
                    return None
                if (batch.metadata or {}).get(OUR_NAME) == name:
                    return batch.id
        return None

    async def has_ended(self, provider_id: str) -> bool:
        """Whether a batch's files are there."""
        batch = await self._retrieve(provider_id)
        if batch.status == "failed" and not (batch.output_file_id or batch.error_file_id):
            raise _refused(batch, self._key)
        return batch.status in _ENDED

    async def cancel(self, provider_id: str) -> None:
        """Asks for a cancellation; one that comes too late is no error."""
        try:
            async with asking(self._key, OpenAIChat.faults):
                await self._client.batches.cancel(provider_id)
        except ModelCallError as error:
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT}:
                raise

    async def answers(self, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """The lines of the output file and the error file, as far as there are such."""
        batch = await self._retrieve(provider_id)
        for file_id in (batch.output_file_id, batch.error_file_id):
            if not file_id:
                continue
            async with (
                asking(self._key, OpenAIChat.faults, seconds=None),
                self._client.files.with_streaming_response.content(file_id) as content,
            ):
                async for line in batch_wire.lines(content.iter_bytes()):
                    for answer in batch_wire.answers_in(line, self._key):
                        yield answer

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.close()

    async def _retrieve(self, provider_id: str) -> Batch:
        async with asking(self._key, OpenAIChat.faults):
            return await self._client.batches.retrieve(provider_id)


async def _write(file: IO[bytes], calls: AsyncIterator[tuple[str, str]]) -> None:
    async for custom_id, request in calls:
        line = f'{{"custom_id": {json.dumps(custom_id)}, "method": "POST", "url": "{_ENDPOINT}", "body": {request}}}\n'
        await asyncio.to_thread(file.write, line.encode())
        if file.tell() > MOST_BYTES:
            raise BatchTooLargeError(f"the calls take more than {MOST_BYTES:,} bytes", for_now=False)
    file.seek(0)


def _refused(batch: Batch, key: SecretStr | None) -> BatchRefusedError | BatchTooLargeError:
    """What a batch that failed as a whole has come to; no call of it was made."""
    faults = (batch.errors.data if batch.errors else None) or []
    code = next((fault.code for fault in faults if fault.code), "batch_failed")
    message = next((fault.message for fault in faults if fault.message), "the provider gives no reason")
    code, message = errors.readable(code, key), errors.readable(message, key)
    if code == _ENQUEUED_LIMIT:
        return BatchTooLargeError(message, for_now=True)
    return BatchRefusedError(message, kind=FailureKind.JOB, code=code)
