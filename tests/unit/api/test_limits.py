"""Bodies that take their time, and bodies that are too much together."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
from fastapi import FastAPI, Request

from app.api import problems
from app.api.limits import BODIES_HELD, Limits
from app.api.strict_json import StrictRequest

MOST_BYTES = 1000


class Reader:
    """An application that says how long a body is, once it may."""

    def __init__(self, seconds: float) -> None:
        self.app = FastAPI()
        self.app.add_middleware(Limits, most_bytes=MOST_BYTES, seconds=seconds)
        problems.install(self.app)
        self.app.post("/")(self.read)
        self.reading = 0
        self.all_read, self.go_on = asyncio.Event(), asyncio.Event()

    async def read(self, request: Request) -> int:
        body = await StrictRequest(request.scope, request.receive).body()
        self.reading += 1
        if self.reading == BODIES_HELD:
            self.all_read.set()
        await self.go_on.wait()
        return len(body)

    async def post(self, body: bytes | AsyncIterator[bytes]) -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post("/", content=body)


class TestLimits:
    async def test_a_body_that_does_not_come_is_a_408(self) -> None:
        async def half() -> AsyncIterator[bytes]:
            yield b"half"
            await asyncio.sleep(60)

        answer = await Reader(seconds=0.05).post(half())
        assert (answer.status_code, answer.json()["code"]) == (408, "body_too_slow")
        assert answer.headers["connection"] == "close"

    async def test_bodies_are_bounded_together_until_they_are_worked_off(self) -> None:
        reader = Reader(seconds=60)
        async with asyncio.TaskGroup() as group:
            held = [group.create_task(reader.post(b"x" * MOST_BYTES)) for _ in range(BODIES_HELD)]
            await reader.all_read.wait()
            refused = await reader.post(b"x")
            assert (refused.status_code, refused.json()["code"]) == (503, "too_many_uploads")
            assert refused.headers["retry-after"] == problems.RETRY_SECONDS
            reader.go_on.set()
        assert {task.result().json() for task in held} == {MOST_BYTES}
        assert (await reader.post(b"x")).json() == 1
