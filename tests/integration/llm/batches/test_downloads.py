"""Answers of a batch whose way breaks off: with an error, or as if that were the end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from pydantic import SecretStr

from app.llm.batches import openai
from app.llm.batches.gateway import BatchGateway
from app.llm.connections import retired
from app.llm.connections.connections import Connection, Connections
from app.ports import AnswersIncompleteError, FailureKind, ModelCallError
from tests.integration.llm.conftest import KEY
from tests.integration.llm.stub_provider import Answer, StubProvider
from tests.observe import eventually

Kind = Literal["openai", "anthropic"]

LINES = [f'{{"custom_id": "c{number}", "response": null, "result": null}}\n' for number in range(3)]
MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
MIDDLE = len(LINES[0]) + 20
"""Within the second line."""

ABOUT: dict[Kind, dict[str, Any]] = {
    "openai": {
        "id": "batch_1",
        "status": "completed",
        "output_file_id": "file-1",
        "error_file_id": None,
        "request_counts": {"total": 3, "completed": 3, "failed": 0},
    },
    "anthropic": {
        "id": "msgbatch_1",
        "processing_status": "ended",
        "request_counts": {"processing": 0, "succeeded": 2, "errored": 1, "canceled": 0, "expired": 0},
    },
}


async def read(stub: StubProvider, connection: Kind, answers: Answer) -> list[str]:
    stub.then(Answer.of_json(ABOUT[connection]), answers)
    path = "/v1" if connection == "openai" else ""
    gateway = BatchGateway(
        Connections({connection: Connection(connection, connection, stub.url + path, SecretStr(KEY))})
    )
    await gateway.prepare(connection, "default")
    try:
        return [custom_id async for custom_id, _ in gateway.answers(connection, "batch_1")]
    finally:
        await gateway.close()


@pytest.mark.parametrize("connection", ABOUT)
class TestAnswers:
    async def test_that_are_as_many_as_the_provider_counts_are_all(
        self, stub: StubProvider, connection: Kind
    ) -> None:
        assert await read(stub, connection, Answer(body="".join(LINES).encode())) == ["c0", "c1", "c2"]

    async def test_that_break_off_are_to_be_read_again(self, stub: StubProvider, connection: Kind) -> None:
        whole = Answer(body="".join(LINES).encode())
        head = len(whole.wire()) - len(whole.body)
        with pytest.raises(ModelCallError) as failed:
            await read(stub, connection, Answer(body=whole.body, cut_after=head + MIDDLE))
        assert (failed.value.kind, failed.value.code) == (FailureKind.RETRY, "connection_lost")

    async def test_that_end_early_without_an_error_are_to_be_read_again(
        self, stub: StubProvider, connection: Kind
    ) -> None:
        with pytest.raises(AnswersIncompleteError) as failed:
            await read(stub, connection, Answer(body="".join(LINES).encode()[:MIDDLE], announced=False))
        assert str(failed.value) == "1 of 3 answers came"


async def test_a_file_that_is_moved_is_read_without_the_key(stub: StubProvider) -> None:
    async with StubProvider(Answer(body=b"\xef\xbb\xbf" + "".join(LINES).encode())) as elsewhere:
        moved = Answer(302, headers={"location": f"{elsewhere.url}/blob?sig=1"})
        assert await read(stub, "openai", moved) == ["c0", "c1", "c2"]
        assert elsewhere.seen[0].line == "GET /blob?sig=1 HTTP/1.1"
        assert KEY.encode() not in elsewhere.seen[0].wire


async def test_a_file_that_is_moved_twice_is_an_error(stub: StubProvider) -> None:
    async with StubProvider(Answer(302, headers={"location": "/"})) as elsewhere:
        with pytest.raises(ModelCallError) as failed:
            await read(stub, "openai", Answer(307, headers={"location": elsewhere.url}))
    assert (failed.value.kind, failed.value.code) == (FailureKind.JOB, "http_302")


async def test_a_file_that_is_still_pending_is_waited_for(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "READY_WAITS", (0.0, 0.0))
    file = {
        "id": "file-1",
        "object": "file",
        "bytes": 1,
        "created_at": 1,
        "filename": "a",
        "purpose": "batch",
        "status": "pending",
    }
    pending = {"error": {"code": "invalidPayload", "message": "File is not ready. Status: pending"}}
    batch = {
        "id": "batch_1",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": "file-1",
        "completion_window": "24h",
        "status": "validating",
        "created_at": 1,
    }
    stub.then(Answer.of_json(file), Answer.of_json(pending, 400), Answer.of_json(batch))
    gateway = BatchGateway(
        Connections({"openai": Connection("openai", "openai", f"{stub.url}/v1", SecretStr(KEY))})
    )
    await gateway.prepare("openai", "default")

    async def calls() -> AsyncIterator[tuple[str, str]]:
        yield "c0", "{}"

    try:
        uploaded = await gateway.upload("openai", "ours.jsonl", calls())
        assert await uploaded.submit("ours") == "batch_1"
    finally:
        await gateway.close()
    assert len(stub.seen) == 3


async def test_a_file_of_openai_that_is_gone_counts_as_deleted(stub: StubProvider) -> None:
    gone = {"error": {"message": "No such File object", "type": "invalid_request_error"}}
    stub.then(Answer(404, json.dumps(gone).encode(), {"content-type": "application/json"}))
    gateway = BatchGateway(
        Connections({"openai": Connection("openai", "openai", f"{stub.url}/v1", SecretStr(KEY))})
    )
    await gateway.prepare("openai", "default")
    try:
        assert await gateway.delete_file("openai", "ours.jsonl", "file-1", MADE_AT)
    finally:
        await gateway.close()
    assert stub.seen[0].line == "DELETE /v1/files/file-1 HTTP/1.1"


async def test_a_client_whose_connection_was_changed_is_closed_once_its_last_call_has_ended(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retired, "RETIRED_SECONDS", 0.02)
    stub.then(Answer.of_json(ABOUT["openai"]), Answer(body="".join(LINES).encode()))
    gateway = BatchGateway(
        Connections({"openai": Connection("openai", "openai", f"{stub.url}/v1", SecretStr(KEY))})
    )
    await gateway.prepare("openai", "default")
    client = gateway._endpoints["openai"]._client
    async with aclosing(gateway.answers("openai", "batch_1")) as answers:
        read = [await anext(answers)]
        gateway.renew("openai")
        await gateway.prepare("openai", "default")
        assert gateway._endpoints["openai"]._client is not client
        await asyncio.sleep(0.1)
        assert not client.is_closed()
        read += [answer async for answer in answers]
    assert [custom_id for custom_id, _ in read] == ["c0", "c1", "c2"]
    assert await asyncio.to_thread(eventually, client.is_closed)
    await gateway.close()
