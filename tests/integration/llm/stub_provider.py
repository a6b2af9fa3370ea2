"""A scripted HTTP server that answers as it is told and writes down exactly what reached it."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

_PHRASES = {each.value: each.phrase for each in HTTPStatus}


@dataclass(frozen=True)
class Answer:
    """One reply, with the faults that a network can add to it."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None
    """Bytes of the reply after which the connection is closed; ``0`` closes it unanswered."""
    reset: bool = False
    """Whether the connection is reset instead of answered."""
    drip: float = 0.0
    """Seconds before each byte of the body."""
    length: int | None = None
    """Bytes of a body of no meaning, instead of ``body``."""
    announced: bool = True
    """Whether that length is announced."""

    @classmethod
    def of_json(cls, body: object, status: int = 200, **headers: str) -> Self:
        """A JSON reply; ``retry_after="1"`` becomes the header ``retry-after: 1``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, json.dumps(body).encode(), {"content-type": "application/json", **named})

    def dripping(self, seconds: float) -> Self:
        """The same reply, byte by byte."""
        return replace(self, drip=seconds)

    def wire(self) -> bytes:
        """The reply as bytes, but for a body of no meaning."""
        length = len(self.body) if self.length is None else self.length
        body = self.body if self.length is None else b""
        framing = {"content-length": str(length)} if self.announced else {"connection": "close"}
        head = {**framing, **self.headers}
        lines = [f"HTTP/1.1 {self.status} {_PHRASES.get(self.status, 'Unregistered')}"]
        lines += [f"{name}: {value}" for name, value in head.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@dataclass(frozen=True)
class Seen:
    """A request as it came over the wire."""

    line: str
    headers: Mapping[str, str]
    body: bytes
    wire: bytes
    """All of it."""

    def json(self) -> Any:
        return json.loads(self.body)


class StubProvider:
    """Gives ``answers`` in turn, the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = deque(answers)
        self.script: Callable[[Seen], Answer] | None = None
        """What answers in their place, if anything does."""
        self.seen: list[Seen] = []
        self.connections = 0
        self.written = 0
        """Bytes of bodies of no meaning that the client took."""

    def then(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._writers: set[asyncio.StreamWriter] = set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        received = await reader.readuntil(b"\r\n\r\n")
        head = received.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.seen.append(Seen(head[0], headers, body, received + body))
        answer = self.script(self.seen[-1]) if self.script else self._in_turn()
        await asyncio.sleep(answer.delay)
        if answer.reset:
            writer.transport.abort()
            return False
        sent = answer.wire()[: answer.cut_after]
        dripping = len(answer.body) if answer.drip else 0
        writer.write(sent[: len(sent) - dripping])
        for byte in sent[len(sent) - dripping :]:
            await asyncio.sleep(answer.drip)
            writer.write(bytes([byte]))
            await writer.drain()
        await self._write_nonsense(answer.length or 0, writer)
        await writer.drain()
        return answer.cut_after is None and answer.announced

    def _in_turn(self) -> Answer:
        return self._answers.popleft() if len(self._answers) > 1 else self._answers[0]

    async def _write_nonsense(self, length: int, writer: asyncio.StreamWriter) -> None:
        piece = b" " * 65536
        for _ in range(length // len(piece) + 1):
            if not length:
                return
            writer.write(piece)
            await writer.drain()
            self.written += len(piece)
