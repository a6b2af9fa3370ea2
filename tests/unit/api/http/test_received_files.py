"""Long bodies on the disk are bounded for each tenant, in all, and in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from fastapi import Request
from starlette.types import Message

from app.api.http import received_files
from app.api.http.problems import ProblemError
from app.api.http.received_files import ReceivedFiles

SIZE = 1000


def request(*chunks: bytes, stalls: bool = False) -> Request:
    """A request whose body comes in these chunks, and then not to its end."""

    async def messages() -> AsyncIterator[Message]:
        for chunk in chunks:
            yield {"type": "http.request", "body": chunk, "more_body": True}
        if stalls:
            await asyncio.Event().wait()
        yield {"type": "http.request", "body": b"", "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, messages().__anext__)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> ReceivedFiles:
    monkeypatch.setattr(received_files, "MOST_BYTES", SIZE)
    monkeypatch.setattr(received_files, "TENANT_BYTES", SIZE)
    monkeypatch.setattr(received_files, "ALL_BYTES", 7 * SIZE // 4)
    return ReceivedFiles()


async def refused(files: ReceivedFiles, tenant: str, body: Request) -> int:
    with pytest.raises(ProblemError) as error:
        async with files.receive(body, tenant):
            pass
    return error.value.status_code


async def test_a_tenant_s_files_and_all_files_are_bounded_until_they_are_given_up(
    files: ReceivedFiles,
) -> None:
    async with AsyncExitStack() as held:
        file, _ = await held.enter_async_context(files.receive(request(b"a" * 600, b"b" * 400), "one"))
        assert await file.read_at(599, 2) == b"ab"
        assert await refused(files, "one", request(b"c")) == 429
        await held.enter_async_context(files.receive(request(b"d" * 700), "two"))
        assert await refused(files, "three", request(b"e" * 100)) == 503
    assert await refused(files, "one", request(b"f" * (SIZE + 1))) == 413
    async with files.receive(request(b"g" * SIZE), "one") as (file, _):
        assert file.size == SIZE


async def test_one_that_stands_still_is_given_up(
    files: ReceivedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_files, "STALLED_SECONDS", 0.01)
    assert await refused(files, "one", request(b"a", stalls=True)) == 408
    monkeypatch.setattr(received_files, "RECEIVE_SECONDS", 0.01)
    monkeypatch.setattr(received_files, "STALLED_SECONDS", 60.0)
    assert await refused(files, "one", request(b"a", stalls=True)) == 408
