"""A provider with limits that it counts strictly: no 60 seconds, wherever they begin, take more calls or tokens than the limit.

`python -m benchmarks.strict_provider LIMITS` prints its port and serves until its standard input ends; `LIMITS` is JSON, the fields of
:class:`Allowance`. It speaks OpenAI's and Anthropic's format, names its limits as they do, or not at all, and shares no code
with the service. A prompt has a fifth more tokens than a quarter of its characters, an answer some 20.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import httpx2
import uvloop

MINUTE = 60.0
LATENCY_SECONDS = 0.2
TOKENS_PER_CHARACTER = 0.3
REQUESTS, TOKENS, INPUT, OUTPUT = range(4)


@dataclass(frozen=True)
class Allowance:
    """What the provider allows; ``None`` for any number.

    Attributes:
        requests: Calls a minute.
        tokens: Tokens a minute.
        input_tokens: Tokens of prompts a minute.
        output_tokens: Tokens of answers a minute.
        requests_a_day: Calls a day, which come back evenly, named in the header of requests as Groq does.
        names: Whether replies name the limits.
    """

    requests: int | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests_a_day: int | None = None
    names: bool = True


@contextmanager
def running(allowance: Allowance) -> Iterator[str]:
    """A provider in a process of its own, and its address."""
    command = [sys.executable, "-m", "benchmarks.strict_provider", json.dumps(asdict(allowance))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        assert process.stdin is not None
        process.stdin.close()


def account(url: str) -> dict[str, Any]:
    """When calls were taken and rejected, in seconds of the machine's monotonic clock."""
    found: dict[str, Any] = httpx2.get(f"{url}/account", timeout=60).raise_for_status().json()
    return found


class Ledger:
    """What was taken within the last minute."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.limits = (
            allowance.requests,
            allowance.tokens,
            allowance.input_tokens,
            allowance.output_tokens,
        )
        self._recent: deque[tuple[float, tuple[int, int, int, int]]] = deque()
        self.used = [0, 0, 0, 0]
        self.taken: list[float] = []
        self.rejected: list[float] = []

    def take(self, now: float, cost: tuple[int, int, int, int]) -> float:
        """0 if a call is taken, else the seconds until it would be."""
        while self._recent and self._recent[0][0] <= now - MINUTE:
            _, old = self._recent.popleft()
            self.used = [used - units for used, units in zip(self.used, old, strict=True)]
        wait = max(self._wait(now, what, cost[what]) for what in range(4))
        if wait:
            self.rejected.append(now)
            return wait
        self._recent.append((now, cost))
        self.used = [used + units for used, units in zip(self.used, cost, strict=True)]
        self.taken.append(now)
        return 0.0

    def _wait(self, now: float, what: int, units: int) -> float:
        limit, used = self.limits[what], self.used[what]
        if limit is None or used + units <= limit:
            return 0.0
        for at, cost in self._recent:
            used -= cost[what]
            if used + units <= limit:
                return at + MINUTE - now
        return MINUTE

    def full_after(self, now: float) -> float:
        """Seconds until everything is there again."""
        return self._recent[-1][0] + MINUTE - now if self._recent else 0.0


class _Connection(asyncio.Protocol):
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        if head.startswith(b"GET "):
            told = {"taken": self._ledger.taken, "rejected": self._ledger.rejected}
            self._send(200, {}, told)
        elif len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        else:
            self._call(b"/messages" in head.partition(b"\r\n")[0], json.loads(body))
        self._received = b""

    def _call(self, anthropic: bool, body: dict[str, Any]) -> None:
        now = self._loop.time()
        characters = sum(len(message["content"]) for message in body["messages"]) + len(
            body.get("system") or ""
        )
        read, written = round(characters * TOKENS_PER_CHARACTER), random.randint(15, 25)
        wait = self._ledger.take(now, (1, read + written, read, written))
        headers = _named(self._ledger, now, anthropic=anthropic) if self._ledger.allowance.names else {}
        if wait:
            headers |= {"retry-after": str(int(wait) + 1)}
            fault = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Too fast"}
            self._loop.call_later(0.01, self._send, 429, headers, {"type": "error", "error": fault})
        else:
            reply = _anthropic(read, written) if anthropic else _openai(read, written)
            self._loop.call_later(LATENCY_SECONDS, self._send, 200, headers, reply)

    def _send(self, status: int, headers: dict[str, str], reply: dict[str, Any]) -> None:
        content = json.dumps(reply).encode()
        named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{named}content-length: {len(content)}\r\n\r\n"
        self._transport.write(head.encode() + content)


def _named(ledger: Ledger, now: float, *, anthropic: bool) -> dict[str, str]:
    """The headers that name what is allowed, what is left, and when all of it is there again."""
    names = ("requests", "tokens", "input-tokens", "output-tokens")
    full = ledger.full_after(now)
    headers: dict[str, str] = {}
    for what, limit in zip(names, ledger.limits, strict=True):
        if limit is None:
            continue
        left = limit - ledger.used[names.index(what)]
        if anthropic:
            reset = (datetime.now(UTC) + timedelta(seconds=full)).isoformat(timespec="seconds")
            first = f"anthropic-ratelimit-{what}"
            headers |= {
                f"{first}-limit": str(limit),
                f"{first}-remaining": str(left),
                f"{first}-reset": reset,
            }
        else:
            headers |= _openai_headers(what, limit, left, full)
    if ledger.allowance.requests_a_day is not None:
        a_day, taken = ledger.allowance.requests_a_day, len(ledger.taken)
        headers |= _openai_headers("requests", a_day, a_day - taken, taken * 86400 / a_day)
    return headers


def _openai_headers(what: str, limit: int, left: int, reset: float) -> dict[str, str]:
    minutes, seconds = divmod(reset, 60)
    return {
        f"x-ratelimit-limit-{what}": str(limit),
        f"x-ratelimit-remaining-{what}": str(left),
        f"x-ratelimit-reset-{what}": f"{minutes:.0f}m{seconds:.3f}s",
    }


def _openai(read: int, written: int) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def _anthropic(read: int, written: int) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "4"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


async def _serve(allowance: Allowance) -> None:
    loop, ledger = asyncio.get_running_loop(), Ledger(allowance)
    server = await loop.create_server(lambda: _Connection(ledger), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(Allowance(**json.loads(sys.argv[1]))))
