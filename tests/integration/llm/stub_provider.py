"""A scripted HTTP server that answers as it is told and writes down exactly what reached it."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """One reply, with the faults that a network can add to it."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None
    """Bytes of the reply after which the connection is closed; ``0`` closes it unanswered."""

    @classmethod
    def of_json(cls, body: object, status: int = 200, **headers: str) -> Self:
        """A JSON reply; ``retry_after="1"`` becomes the header ``retry-after: 1``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, json.dumps(body).encode(), {"content-type": "application/json", **named})

    def wire(self) -> bytes:
        """The reply as bytes."""
        head = {"content-length": str(len(self.body)), **self.headers}
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase if self.status != 529 else 'Overloaded'}"
        ]
        lines += [f"{name}: {value}" for name, value in head.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body


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
        self.seen: list[Seen] = []
        self.connections = 0

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
        answer = self._answers.popleft() if len(self._answers) > 1 else self._answers[0]
        await asyncio.sleep(answer.delay)
        writer.write(answer.wire()[: answer.cut_after])
        await writer.drain()
        return answer.cut_after is None
