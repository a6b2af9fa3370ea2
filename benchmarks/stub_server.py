"""A server that answers every request with the same chat completion, at as little cost as Python allows.

`python -m benchmarks.stub_server SCENARIO LATENCY_MS` prints its port and serves until its standard input ends.
In the scenario ``counted`` it keeps account of what it was asked, for :func:`take_account`.
"""

import asyncio
import gzip
import json
import ssl
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, cast

import httpx2
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


@dataclass
class Account:
    """What was asked: how many prompts, and the sum of their CRC-32, whatever their order."""

    calls: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, prompts: Iterable[str]) -> Self:
        """The account of these prompts."""
        account = cls()
        for prompt in prompts:
            account.add(prompt)
        return account

    def add(self, prompt: str) -> None:
        """Counts one."""
        self.calls += 1
        self.checksum += zlib.crc32(prompt.encode())


def take_account(url: str) -> Account:
    """What a server of the scenario ``counted`` was asked since this was asked last."""
    return Account(**httpx2.get(f"{url}/account", timeout=60).raise_for_status().json())


class _Connection(asyncio.Protocol):
    def __init__(self, scenario: str, latency: float, account: Account) -> None:
        self._closing = scenario == "closing"
        self._account = account if scenario == "counted" else None
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
        if end and head.startswith(b"GET "):
            self._received = b""
            self._tell_account()
        elif end and len(body) == int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._received = b""
            if self._account is not None:
                self._account.add(json.loads(body)["messages"][-1]["content"])
            self._loop.call_later(self._latency, self._answer)

    def _tell_account(self) -> None:
        assert self._account is not None
        self._transport.write(_reply(json.dumps(asdict(self._account)).encode()))
        self._account.calls = self._account.checksum = 0

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
    loop, account = asyncio.get_running_loop(), Account()
    server = await loop.create_server(
        lambda: _Connection(scenario, latency, account), "127.0.0.1", 0, ssl=tls, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1], float(sys.argv[2]) / 1000))
