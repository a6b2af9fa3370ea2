"""Bodies that take their time, and bodies that are too much together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import httpx2
from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http import problems
from app.api.http.access import Caller
from app.api.http.limits import BODIES_HELD, KEY_BODIES, PUBLIC_BYTES, TENANT_BODIES, Limits
from app.api.http.strict_json import StrictRequest
from app.services.keys.authenticator import Holder

MOST_BYTES = 1000


class Known:
    """Says whose a request is by its headers: "tenant/key", or nobody's."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if scope["type"] == "http" and (who := request.headers.get("who")):
            tenant, _, key = who.partition("/")
            request.state.caller = Caller(tenant, Holder(key, tenant, frozenset(), "", None, None, False, 0))
        await self.app(scope, receive, send)


class Reader:
    """An application that says how long a body is, once it may."""

    def __init__(self, seconds: float, wanted: int = 0) -> None:
        self.wanted = wanted
        self.app = FastAPI()
        self.app.add_middleware(Known)
        self.app.add_middleware(Limits, most_bytes=MOST_BYTES, seconds=seconds)
        problems.install(self.app)
        self.app.post("/")(self.read)
        self.reading = 0
        self.all_read, self.go_on = asyncio.Event(), asyncio.Event()

    async def read(self, request: Request) -> int:
        body = await StrictRequest(request.scope, request.receive).body()
        self.reading += 1
        if self.reading == self.wanted:
            self.all_read.set()
        await self.go_on.wait()
        return len(body)

    async def post(self, body: bytes | AsyncIterator[bytes], who: str = "one/key") -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post("/", content=body, headers={"who": who})

    def limits_bytes(self, most: int) -> None:
        """Takes longer bodies than :data:`MOST_BYTES`."""
        self.app.user_middleware[0].kwargs["most_bytes"] = most

    @contextlib.asynccontextmanager
    async def holding(self, bodies: Mapping[str, int]) -> AsyncIterator[None]:
        """So many of the longest bodies are held, by whom."""
        async with asyncio.TaskGroup() as group:
            held = [
                group.create_task(self.post(b"x" * MOST_BYTES, who))
                for who, n in bodies.items()
                for _ in range(n)
            ]
            async with asyncio.timeout(60):
                await self.all_read.wait()
            yield
            self.go_on.set()
        assert {task.result().json() for task in held} == {MOST_BYTES}


class TestLimits:
    async def test_a_body_that_does_not_come_is_a_408(self) -> None:
        async def half() -> AsyncIterator[bytes]:
            yield b"half"
            await asyncio.Event().wait()

        answer = await Reader(seconds=0.05).post(half())
        assert (answer.status_code, answer.json()["code"]) == (408, "body_too_slow")
        assert answer.headers["connection"] == "close"

    async def test_without_a_key_a_body_is_short(self) -> None:
        reader = Reader(seconds=60)
        reader.limits_bytes(10 * PUBLIC_BYTES)
        reader.go_on.set()
        assert (await reader.post(b"x" * PUBLIC_BYTES, who="")).json() == PUBLIC_BYTES
        refused = await reader.post(b"x" * (PUBLIC_BYTES + 1), who="")
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")

    async def test_held_bodies_without_a_key_keep_nobody_from_uploading(self) -> None:
        """They once counted among all that may be held, and shut off every upload for a minute."""
        reader, many = Reader(seconds=60, wanted=BODIES_HELD * 10), BODIES_HELD * 10
        async with reader.holding({"": many}):
            reader.go_on.set()
            assert (await reader.post(b"x" * MOST_BYTES)).json() == MOST_BYTES

    async def test_a_key_has_its_share_and_its_tenant_s_other_keys_have_the_rest(self) -> None:
        reader = Reader(seconds=60, wanted=KEY_BODIES)
        async with reader.holding({"one/slow": KEY_BODIES}):
            refused = await reader.post(b"x", who="one/slow")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_uploads")
            assert refused.headers["retry-after"] == problems.RETRY_SECONDS
            reader.go_on.set()
            assert (await reader.post(b"x", who="one/other")).json() == 1
        assert (await reader.post(b"x", who="one/slow")).json() == 1, "worked off, nothing is held"

    async def test_a_tenant_has_its_share_however_many_keys_it_has(self) -> None:
        reader = Reader(seconds=60, wanted=TENANT_BODIES)
        async with reader.holding({f"one/{n}": 1 for n in range(TENANT_BODIES)}):
            refused = await reader.post(b"x", who="one/new")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_uploads")
            reader.go_on.set()
            assert (await reader.post(b"x" * MOST_BYTES, who="other/key")).json() == MOST_BYTES

    async def test_where_tenants_hold_all_a_further_one_has_a_body_and_no_second(self) -> None:
        reader = Reader(seconds=60, wanted=BODIES_HELD + 1)
        held = {f"{tenant}/{n % 2}": KEY_BODIES for n, tenant in enumerate("aabb")} | {"new/key": 1}
        async with reader.holding(held):
            refused = await reader.post(b"x", who="new/key")
            assert (refused.status_code, refused.json()["code"]) == (503, "too_many_uploads")
            reader.go_on.set()
        assert (await reader.post(b"x", who="new/key")).json() == 1
