"""A worker's adapter, sent replies of 10 MB over real HTTP: texts, shapes that are dear to parse, packed ones, errors, a key in pieces."""

import asyncio
import contextlib
import gzip
import json
from functools import partial

from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, Model, ModelParameters
from app.llm.connections.connections import Connection
from app.llm.formats.openai import OpenAIChat
from app.llm.transports.http1 import MAX_BODY_BYTES
from app.ports import ModelCallError
from benchmarks.stalls.watch import longest_stall

KEY = "sk-abc123DEF456ghi789JKL012mno345PQR678"


async def measure() -> dict[str, float]:
    """The longest stall of a worker by what a provider replied."""
    found = {}
    for name, (status, body) in _replies().items():
        async with await asyncio.start_server(partial(_answer, status, body), "127.0.0.1", 0) as server:
            chat = OpenAIChat(_connection(server.sockets[0].getsockname()[1]), "lean")
            for _ in range(2):  # the first call imports, and makes the connection
                found[f"replies: {name}, {len(body):,} bytes"] = await longest_stall(partial(_ask, chat))
            await chat.close()
    return found


def _connection(port: int) -> Connection:
    return Connection("stub", "openai", f"http://127.0.0.1:{port}/v1", SecretStr(KEY))


async def _ask(chat: OpenAIChat) -> None:
    model = Model("stub/m", "stub", "m", ModelParameters())
    with contextlib.suppress(ModelCallError):
        await chat.complete(ChatRequest(model, None, "Who are you?", "job/1"))


async def _answer(
    status: int, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answers each request of a connection."""
    packed = b"content-encoding: gzip\r\n" if body[:2] == b"\x1f\x8b" else b""
    head = b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n"
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            asked = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(asked.lower().partition(b"content-length:")[2].split()[0]))
            writer.write(head % (status, packed, len(body)))
            for start in range(0, len(body), 65536):
                writer.write(body[start : start + 65536])
                await writer.drain()
    writer.close()


def _replies() -> dict[str, tuple[int, bytes]]:
    """Statuses and bodies."""
    said = "Well, " * (MAX_BODY_BYTES // 6 - 100)
    shapes = {
        "a text": _chat(json.dumps(said)),
        "a text of pieces of the key": _chat(json.dumps("c123DEF456" * (MAX_BODY_BYTES // 10 - 100))),
        "a text of escapes": _chat('"' + "\\u00e9" * (MAX_BODY_BYTES // 6 - 100) + '"'),
        "numbers": _chat('"a"', "[" + "1," * (MAX_BODY_BYTES // 2 - 500) + "1]"),
        "objects": _chat('"a"', "[" + '{"b":[]},' * (MAX_BODY_BYTES // 9 - 100) + "1]"),
        "fields": _chat('"a"', "{" + ",".join(f'"{n}":1' for n in range(MAX_BODY_BYTES // 12)) + "}"),
    }
    found = {name: (200, body) for name, body in shapes.items()}
    found["a packed text"] = (200, gzip.compress(shapes["a text"]))
    found["an error of objects"] = (400, shapes["objects"])
    found["an error of text"] = (500, b"no " * (MAX_BODY_BYTES // 3))
    return found


def _chat(content: str, other: str = "1") -> bytes:
    message = f'{{"role":"assistant","content":{content}}}'
    usage = '{"prompt_tokens":1,"completion_tokens":1}'
    return (
        f'{{"choices":[{{"message":{message},"finish_reason":"stop"}}],"usage":{usage},"other":{other}}}'
    ).encode()
