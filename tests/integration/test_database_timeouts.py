"""Requests that last, with a database that answers and with one that does not."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.http import database_timeouts, problems
from app.api.http.database_timeouts import DatabaseTimeoutMiddleware
from app.db.engine import connect
from tests.integration.engine import engine

__all__ = ["engine"]
SLOW = 0.3


class Slow:
    """An application whose answers take several times CHECK_SECONDS."""

    def __init__(self, probe: AsyncEngine) -> None:
        self.app = FastAPI()
        self.app.add_middleware(DatabaseTimeoutMiddleware)
        self.app.state.services = SimpleNamespace(probe=probe)
        self.ended: list[str] = []
        self.app.get("/whole")(self.whole)
        self.app.get("/stream")(self.stream)

    async def whole(self) -> str:
        try:
            await asyncio.sleep(SLOW)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return "done"

    async def stream(self) -> StreamingResponse:
        async def pieces() -> AsyncIterator[str]:
            yield "begun, "
            await asyncio.sleep(SLOW)
            yield "done"

        return StreamingResponse(pieces())

    async def get(self, path: str) -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.get(path)


@pytest.fixture(autouse=True)
def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_timeouts, "CHECK_SECONDS", 0.05)


@pytest.fixture
async def nowhere() -> AsyncIterator[AsyncEngine]:
    made = connect("postgresql+psycopg://assay@/assay?host=/nonexistent")
    yield made
    await made.dispose()


class TestSlowRequest:
    async def test_has_all_the_time_while_the_database_answers(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database_timeouts, "PROBE_SECONDS", 60)
        slow = Slow(engine)
        assert (await slow.get("/whole")).json() == "done"

    async def test_is_ended_with_a_503_when_it_does_not(self, nowhere: AsyncEngine) -> None:
        slow = Slow(nowhere)
        answer = await slow.get("/whole")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, problems.RETRY_SECONDS)
        assert answer.json()["code"] == "database_unavailable"
        await asyncio.sleep(0.01)
        assert slow.ended == ["cancelled"]

    async def test_whose_answer_has_begun_is_left_alone(self, nowhere: AsyncEngine) -> None:
        assert (await Slow(nowhere).get("/stream")).text == "begun, done"
