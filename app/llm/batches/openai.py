"""OpenAI's batch endpoints (https://platform.openai.com/docs/guides/batch), and those of every server that has them too."""

import asyncio
import contextlib
import json
import re
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from datetime import datetime
from http import HTTPStatus
from typing import IO, Literal

import httpx2
from openai import APIStatusError, AsyncOpenAI
from openai.types import Batch
from pydantic import SecretStr

from app.domain.providers.model import ChatReply
from app.llm.batches import batch_wire
from app.llm.batches.endpoints import BatchEndpoints, too_large
from app.llm.connections.connections import Connection
from app.llm.formats import wire
from app.llm.formats.openai import OpenAIChat
from app.llm.replies import errors
from app.llm.replies.redact_key import keyless
from app.llm.replies.transport_reply import Reply
from app.llm.transports.sdk import guarded, http_client
from app.ports import BatchRefusedError, BatchTooLargeError, FailureKind, ModelCallError, UploadedBatch

MOST_BYTES = 190_000_000
"""Of a file; OpenAI takes 200 MB."""

OUR_NAME = "persona_assay_batch"
"""Key of the batches' metadata under which ours have their names."""

_ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_PURPOSE: Literal["batch"] = "batch"
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_MOVED = frozenset({301, 302, 303, 307, 308})
READY_WAITS = (2.0, 5.0, 10.0, 20.0, *(30.0,) * 20)
"""Seconds between attempts at a batch whose uploaded file the provider is still checking; some 10 minutes in all."""
FILE_PENDING = "file_pending"
"""Our code for a file that is not ready after that; it is then uploaded anew."""
_PENDING = re.compile(
    r"\bfile\b.*(not (yet )?(ready|processed|available)|pending|still (being )?process|is processing)",
    re.IGNORECASE | re.DOTALL,
)
"""Azure's words, for which there is no code: https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch."""
_ENQUEUED_LIMIT = "token_limit_exceeded"
"""Code of a batch that was turned down because too many tokens are waiting already, its own included."""


class OpenAIBatches(BatchEndpoints[AsyncOpenAI]):
    """The batch endpoints of one connection of kind ``openai``."""

    chat = OpenAIChat

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, OpenAIChat.client)

    def decode(self, answer: str) -> ChatReply:
        """Return the reply in a line of an output or error file.

        Some servers leave out the status, or the ``body`` around the reply.
        """
        line = batch_wire.object_of(answer)
        response, fault = wire.mapping(line.get("response")), line.get("error")
        status, body = response.get("status_code"), wire.mapping(response.get("body", response))
        if isinstance(status, str) and status.isascii() and status.isdigit():
            status = int(status)
        if isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST:
            raise errors.refused(status, body, {}, self._key)
        if status == HTTPStatus.OK or "choices" in body:
            received = Reply(HTTPStatus.OK, {"x-request-id": response.get("request_id") or ""}, b"")
            return keyless(OpenAIChat.read(body, received, self._key), self._key)
        fault = fault or errors.fault_of(body)
        if response and status is None and not fault:
            raise errors.malformed("the line of the batch has neither a status nor an answer", None)
        raise errors.unanswered(fault, self._key)

    async def upload(self, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:
        """Uploads a file under a name; a batch of it is made by what is returned."""
        with tempfile.TemporaryFile() as file:
            await _write(file, calls)
            try:
                async with self._asking(batch_wire.UPLOAD_SECONDS):
                    uploaded = await self._client.files.create(file=(name, file), purpose=_PURPOSE)
            except ModelCallError as error:
                raise too_large(error) from None

        async def submit(name: str) -> str:
            for wait in (*READY_WAITS, None):
                try:
                    return await self._create(uploaded.id, name)
                except ModelCallError as error:
                    if not _is_pending(error):
                        raise
                    pending = error
                if wait is not None:
                    await asyncio.sleep(wait)
            raise ModelCallError(
                str(pending), kind=FailureKind.RETRY, code=FILE_PENDING, status=pending.status
            )

        return UploadedBatch(uploaded.id, submit)

    async def _create(self, file_id: str, name: str) -> str:
        async with self._asking():
            batch = await self._client.batches.create(
                input_file_id=file_id,
                endpoint=_ENDPOINT,
                completion_window="24h",
                metadata={OUR_NAME: name},
            )
        return batch.id

    async def delete_file(self, name: str, file_id: str | None, since: datetime) -> bool:
        """Deletes a file; one whose id is not known is looked for by its name."""
        found = file_id or await self._find_file(name, since)
        if found is None:
            return False
        try:
            async with self._asking():
                await self._client.files.delete(found)
        except ModelCallError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        return True

    async def _find_file(self, name: str, since: datetime) -> str | None:
        async with self._asking():
            async for file in self._client.files.list(purpose=_PURPOSE, order="desc"):
                if file.created_at < since.timestamp():
                    return None
                if file.filename == name:
                    return file.id
        return None

    async def find(self, name: str, calls: int, since: datetime, known: Collection[str]) -> str | None:  # noqa: ARG002 - names suffice
        """The batch that carries a name; they are listed newest first."""
        async with self._asking():
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

    async def _cancel(self, provider_id: str) -> None:
        await self._client.batches.cancel(provider_id)

    async def answers(self, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """The lines of the output file and the error file, as far as there are such.

        What is paid for is in the first one. A way that ends a file early without saying so is found out by the count.
        """
        batch = await self._retrieve(provider_id)
        promised = batch.request_counts.completed if batch.request_counts else 0
        for file_id, least in ((batch.output_file_id, promised), (batch.error_file_id, 0)):
            read = 0
            async with contextlib.aclosing(self._lines(file_id)) as lines:
                async for line in lines:
                    for answer in await batch_wire.answers_in(line, self._key):
                        read += 1
                        yield answer
            batch_wire.check_whole(read, least)

    async def _lines(self, file_id: str | None) -> AsyncGenerator[str]:
        if not file_id:
            return
        moved_to: str | None = None
        async with self._asking(None):
            try:
                async with self._client.files.with_streaming_response.content(file_id) as content:
                    async for line in batch_wire.lines(content.iter_bytes()):
                        yield line
            except APIStatusError as error:
                moved_to = error.response.headers.get("location") if error.status_code in _MOVED else None
                if moved_to is None:
                    raise
                base = error.request.url
        if moved_to is not None:
            async with contextlib.aclosing(self._moved_lines(base.join(moved_to), base.scheme)) as lines:
                async for line in lines:
                    yield line

    async def _moved_lines(self, url: httpx2.URL, scheme: str) -> AsyncGenerator[str]:
        """The lines of a file that the provider keeps on another server, which is sent no key; one redirect is followed."""
        if url.scheme not in {"https", scheme}:
            raise ModelCallError(
                f"the file of answers is moved to an address of {url.scheme}, not https",
                kind=FailureKind.JOB,
                code="file_moved",
            )
        async with (
            self._asking(None),
            http_client(None, guarded(self._guard), bounded=False) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != HTTPStatus.OK:
                raise errors.refused(
                    response.status_code,
                    "the file of answers is moved, and can't be read there",
                    response.headers,
                    None,
                )
            async for line in batch_wire.lines(response.aiter_bytes()):
                yield line

    async def _retrieve(self, provider_id: str) -> Batch:
        async with self._asking():
            return await self._client.batches.retrieve(provider_id)


async def _write(file: IO[bytes], calls: AsyncIterator[tuple[str, str]]) -> None:
    async for custom_id, request in calls:
        line = f'{{"custom_id": {json.dumps(custom_id)}, "method": "POST", "url": "{_ENDPOINT}", "body": {request}}}\n'
        await asyncio.to_thread(file.write, line.encode())
        if file.tell() > MOST_BYTES:
            raise BatchTooLargeError(f"the calls take more than {MOST_BYTES:,} bytes", for_now=False)
    file.seek(0)


def _is_pending(error: ModelCallError) -> bool:
    return error.status in {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.CONFLICT,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    } and (_PENDING.search(str(error)) is not None)


def _refused(batch: Batch, key: SecretStr | None) -> BatchRefusedError | BatchTooLargeError:
    """What a batch that failed as a whole has come to; no call of it was made."""
    faults = (batch.errors.data if batch.errors else None) or []
    code = next((fault.code for fault in faults if fault.code), "batch_failed")
    message = next((fault.message for fault in faults if fault.message), "the provider gives no reason")
    code, message = errors.readable(code, key), errors.readable(message, key)
    if code == _ENQUEUED_LIMIT:
        return BatchTooLargeError(message, for_now=True)
    return BatchRefusedError(message, kind=FailureKind.JOB, code=code)
