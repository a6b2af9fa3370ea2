"""A provider that says the same sentence to everybody, gives every sentence a 4, and writes down what reached it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

SENTENCE = "I would pack my bag at once."
ASKS_FOR_A_SCORE = b"Reply with a single number:"


@dataclass(frozen=True)
class Request:
    """A request as it came over the wire."""

    line: str
    headers: Mapping[str, str]
    body: bytes


class Recorder:
    """What was received so far, by both wire formats at one address."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection."""
        try:
            while True:
                request = await _read(reader)
                self.requests.append(request)
                text = "4" if ASKS_FOR_A_SCORE in request.body else SENTENCE
                body = json.dumps(_reply(text, request.line)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder that listens on 127.0.0.1."""
    recorder, loop = Recorder(), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    starting = asyncio.run_coroutine_threadsafe(asyncio.start_server(recorder.serve, "127.0.0.1", 0), loop)
    server = starting.result(5)
    recorder.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield recorder
    finally:
        asyncio.run_coroutine_threadsafe(_close(server), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


async def _close(server: asyncio.Server) -> None:
    server.close()
    await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:-2])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Request(head[0], headers, await reader.readexactly(int(headers["content-length"])))


def _reply(text: str, line: str) -> dict[str, Any]:
    if "/chat/completions" in line:
        message = {"role": "assistant", "content": text}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
