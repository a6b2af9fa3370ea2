"""Bytes that no request waits for make the replies of their connection suspect."""

import asyncio
import gzip

import pytest

from app.domain.providers.model import ChatRequest
from app.llm.transports import http1
from app.llm.transports import pool as pool_module
from app.llm.transports.http1 import QUIET_SECONDS
from app.ports import ModelCallError
from app.telemetry.metrics import SURPLUS_REPLIES
from tests.integration.llm.conftest import Ask, good
from tests.integration.llm.transports.conftest import OpenPool, request, soon
from tests.integration.llm.transports.raw_server import RawServer, Script, echoes, read_request, reply, says
from tests.integration.llm.transports.test_tls import to

FIRST, OTHER = reply(b"first"), reply(b"somebody else's")
TIRED = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"


def adds(*pieces: bytes, after: float) -> Script:
    """Answers the first request, then sends pieces that no request asked for, one after the other."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(FIRST)
        for piece in pieces:
            await asyncio.sleep(after)
            writer.write(piece)
        await reader.read()

    return script


def suspect_connections() -> float:
    return float(SURPLUS_REPLIES.labels("")._value.get())


class TestSurplus:
    @pytest.mark.parametrize(
        "script",
        [
            says(FIRST + OTHER),
            says(FIRST + FIRST),
            says(FIRST + OTHER[:20]),
            says(FIRST + b"x"),
            says(OTHER.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + FIRST),
            adds(OTHER, after=0.005),
            adds(FIRST, after=0.02),
            adds(OTHER[:3], OTHER[3:], after=0.005),
            adds(b"HTTP/1.1 200 OK\r\n", OTHER, after=0.005),
        ],
        ids=[
            "with it",
            "doubled",
            "its head",
            "garbage",
            "closing",
            "later",
            "doubled later",
            "split",
            "head",
        ],
    )
    async def test_makes_the_reply_suspect_and_ends_the_reuse_of_connections(
        self, script: Script, open_pool: OpenPool
    ) -> None:
        before = suspect_connections()
        async with RawServer(script, echoes) as server:
            pool = open_pool(server)
            first = await pool.exchange(request(b"x"), soon())
            assert first.delivery is not None
            assert not await first.delivery.settled()
            assert suspect_connections() == before + 1
            for number in (b"2", b"3"):
                answer = await pool.exchange(request(number), soon())
                assert answer.delivery is not None
                assert (answer.body, await answer.delivery.settled()) == (number, True)
            assert server.connections == 3

    @pytest.mark.parametrize(
        "script",
        [
            says(FIRST),
            says(FIRST, stays=False),
            says(FIRST + b"\r\n"),
            adds(b"\r\n", after=0.005),
            adds(TIRED, after=0.005),
            says(reply(b"", status=b"204 No Content")),
        ],
        ids=["nothing", "its end", "an empty line", "a later one", "a tired server's notice", "no content"],
    )
    async def test_is_not_what_says_nothing_about_the_reply(
        self, script: Script, open_pool: OpenPool
    ) -> None:
        before = suspect_connections()
        async with RawServer(script) as server:
            first = await open_pool(server).exchange(request(b"x"), soon())
            assert first.delivery is not None
            assert await first.delivery.settled()
            assert suspect_connections() == before

    async def test_that_comes_before_the_next_request_reaches_no_other(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A connection rests: what comes in this time can't be taken for the next reply."""
        monkeypatch.setattr(http1, "QUIET_SECONDS", 0.0)
        async with RawServer(adds(OTHER, after=0.05), echoes) as server:
            pool = open_pool(server)
            await pool.exchange(request(b"x"), soon())
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    async def test_makes_all_earlier_replies_of_the_connection_suspect(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "REST_SECONDS", 0.0)
        async with RawServer(says(FIRST, OTHER + b"x")) as server:
            pool = open_pool(server)
            first = await pool.exchange(request(b"x"), soon())
            assert first.delivery is not None
            assert await first.delivery.settled()
            second = await pool.exchange(request(b"x"), soon())
            assert second.delivery is not None
            assert (await second.delivery.settled(), await first.delivery.settled()) == (False, False)

    async def test_is_looked_for_no_longer_than_needed(self, open_pool: OpenPool) -> None:
        async with RawServer(echoes) as server:
            answer = await open_pool(server).exchange(request(b"x"), soon())
            assert answer.delivery is not None
            started = asyncio.get_running_loop().time()
            assert await answer.delivery.settled()
            assert asyncio.get_running_loop().time() - started >= QUIET_SECONDS / 2


class TestConnectionsOfTenants:
    async def test_are_their_own(self, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_module, "REST_SECONDS", 0.0)
        async with RawServer(says(*[good("openai").wire()] * 2)) as server:
            gateway = to(f"http://127.0.0.1:{server.port}/v1", "lean")
            asked: ChatRequest = ask()
            for tenant in ("a", "b", "a", "b"):
                await gateway.complete(asked._replace(tenant=tenant))
            await gateway.close()
            assert server.connections == 2


class TestPackedReplies:
    @pytest.mark.parametrize("transport", ["lean", "sdk"])
    async def test_that_unpack_to_far_more_than_texts_do_are_refused(self, ask: Ask, transport: str) -> None:
        bomb = reply(gzip.compress(b"0" * 9_000_000), b"content-encoding: gzip")
        async with RawServer(says(bomb)) as server:
            gateway = to(f"http://127.0.0.1:{server.port}/v1", "lean" if transport == "lean" else "sdk")
            with pytest.raises(ModelCallError, match="unpacks to more than 200 times its length"):
                await gateway.complete(ask())
            await gateway.close()
