"""A server that answers every request with the same chat completion, at as little cost as Python allows.

`python -m benchmarks.stub_server SCENARIO LATENCY_MS` prints its port and serves until its standard input ends.
"""

import asyncio
import gzip
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvloop

ANSWER = "4"
CERTIFICATES = Path(__file__).parents[1] / "tests/integration/llm/transports/certificates"
AUTHORITY = CERTIFICATES / "authority.pem"
EVERY = 10
"""Of ``closing``: one connection in so many replies is closed after it."""

_BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 200, "completion_tokens": 1, "total_tokens": 201},
    }
).encode()


@contextmanager
def running(scenario: str, latency_ms: float) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.stub_server", scenario, str(latency_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield f"{'https' if scenario == 'tls' else 'http'}://localhost:{port}/v1"
        process.stdin.close()


class _Connection(asyncio.Protocol):
    def __init__(self, scenario: str, latency: float) -> None:
        self._closing = scenario == "closing"
        self._reply = _reply(_BODY, "content-encoding: gzip\r\n") if scenario == "gzip" else _reply(_BODY)
        self._latency = latency
        self._received = b""
        self._answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) == int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._received = b""
            self._loop.call_later(self._latency, self._answer)

    def _answer(self) -> None:
        self._answered += 1
        if self._closing and self._answered == EVERY:
            self._transport.write(self._reply.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
            self._transport.close()
        else:
            self._transport.write(self._reply)


def _reply(body: bytes, headers: str = "") -> bytes:
    content = gzip.compress(body) if headers else body
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: {len(content)}\r\n\r\n"
    return head.encode() + content


async def _serve(scenario: str, latency: float) -> None:
    tls = None
    if scenario == "tls":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "localhost.key")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(scenario, latency), "127.0.0.1", 0, ssl=tls, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1], float(sys.argv[2]) / 1000))
