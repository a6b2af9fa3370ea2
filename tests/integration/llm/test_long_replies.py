"""What else a worker does goes on while it reads a reply of megabytes."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, Model
from app.llm.connections.connections import Connection
from app.llm.formats.openai import OpenAIChat

KEY = "sk-abc123DEF456ghi789JKL012mno345PQR678"
REQUEST = ChatRequest(Model("stub/m", "stub", "m"), None, "Who are you?", "job/1")


def reply(text: str, other: object = 1) -> bytes:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    choices = [{"message": message, "finish_reason": "stop"}]
    return json.dumps({"choices": choices, "usage": usage, "other": other}).encode()


@contextlib.asynccontextmanager
async def chat_with(body: bytes) -> AsyncIterator[OpenAIChat]:
    """A model whose provider answers so."""
    answering: list[asyncio.Task[None] | None] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(asked.lower().partition(b"content-length:")[2].split()[0]))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        chat = OpenAIChat(Connection("stub", "openai", f"http://127.0.0.1:{port}/v1", SecretStr(KEY)), "lean")
        try:
            yield chat
        finally:
            await chat.close()
            await asyncio.gather(*filter(None, answering))


@pytest.mark.parametrize(
    "body",
    [reply("Well.", [1] * 500_000), reply("c123DEF456" * 300_000)],
    ids=["many numbers", "pieces of the key"],
)
async def test_others_run_meanwhile(body: bytes) -> None:
    async with chat_with(body) as chat:
        await chat.complete(REQUEST)  # the first call imports, too
        begun, longest = time.process_time(), 0.0
        asking = asyncio.create_task(chat.complete(REQUEST))
        while not asking.done():
            turn = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - turn)
        assert KEY[3:15] not in (await asking).text
        # In CPU time, so that other programs do not count.
        assert longest < (time.process_time() - begun) / 3


async def test_a_long_reply_says_what_a_short_one_does() -> None:
    short, long = reply("I like it. é 𝄞", {"a": None}), reply("I like it. é 𝄞", ["x"] * 100_000)
    found = []
    for body in (short, long):
        async with chat_with(body) as chat:
            found.append((await chat.complete(REQUEST))._replace(delivery=None))
    assert found[0] == found[1]
