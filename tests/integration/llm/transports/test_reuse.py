"""Which connections a second request may go over: only those on which nothing is left of the first."""

import asyncio
import socket
import ssl
import struct
import threading

import pytest

from app.llm.replies.transport_reply import LostConnectionError, NotConnectedError
from app.llm.transports import pool as pool_module
from app.llm.transports.http1 import HttpConnection
from app.llm.transports.pool import Pool, Server
from tests.integration.llm.transports.conftest import OpenPool, request, soon
from tests.integration.llm.transports.raw_server import RawServer, Script, echoes, read_request, reply, says

pytestmark = pytest.mark.usefixtures("rests_no_more")
WRONG = reply(b"somebody else's")


def then(answer: bytes, later: bytes, left: asyncio.Event, *, closes: bool = False) -> Script:
    """Answers; once told, says more or closes, unasked."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await left.wait()
        writer.write(later)
        if not closes:
            await reader.read()

    return script


class TestConnections:
    async def test_are_used_again_after_a_whole_reply(self, open_pool: OpenPool) -> None:
        async with RawServer(echoes) as server:
            pool = open_pool(server)
            for number in range(5):
                body = b"%d" % number
                assert (await pool.exchange(request(body), soon())).body == body
            assert server.connections == 1

    async def test_never_carry_two_requests_at_once(self, open_pool: OpenPool) -> None:
        async with RawServer(echoes) as server:
            pool = open_pool(server)
            bodies = [b"%d" % number for number in range(50)]
            for _ in range(3):
                got = await asyncio.gather(*(pool.exchange(request(body), soon()) for body in bodies))
                assert [answer.body for answer in got] == bodies
            assert server.connections == 50

    async def test_are_free_for_others_once_a_deadline_has_passed(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also after the pool was closed in between. A call that waited for a place until its deadline was not sent."""
        monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 2)
        clock = asyncio.get_running_loop().time
        told = asyncio.Event()

        async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await told.wait()
            await echoes(reader, writer)

        async with RawServer(hangs) as server:
            pool = open_pool(server)
            for _ in range(2):
                calls = [pool.exchange(request(b"x"), clock() + 0.05) for _ in range(4)]
                late = await asyncio.gather(*calls, return_exceptions=True)
                assert [type(error) for error in late] == [TimeoutError] * 2 + [NotConnectedError] * 2
                await pool.close()
            told.set()
            assert (await pool.exchange(request(b"x"), soon())).body == b"x"

    async def test_are_no_more_than_the_bound(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 3)
        async with RawServer(echoes) as server:
            pool = open_pool(server)
            await asyncio.gather(*(pool.exchange(request(b"x"), soon()) for _ in range(20)))
            assert server.connections == 3

    @pytest.mark.parametrize(
        "first",
        [
            reply(b"first", b"connection: close"),
            reply(b"first").replace(b"1.1", b"1.0", 1),
            reply(b"first") + WRONG,
            reply(b"first") + b"x",
            reply(b"first") + b"HTTP/1.1",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n" + WRONG,
        ],
    )
    async def test_that_close_or_say_more_than_one_reply_are_not_used_again(
        self, first: bytes, open_pool: OpenPool
    ) -> None:
        async with RawServer(says(first), echoes) as server:
            pool = open_pool(server)
            assert (await pool.exchange(request(b"x"), soon())).body == b"first"
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"
            assert server.connections == 2

    @pytest.mark.parametrize(("later", "closes"), [(WRONG, False), (b"", True), (WRONG, True)])
    async def test_that_say_something_or_close_while_idle_are_not_used_again(
        self, later: bytes, closes: bool, open_pool: OpenPool
    ) -> None:
        left = asyncio.Event()
        async with RawServer(then(reply(b"first"), later, left, closes=closes), echoes) as server:
            pool = open_pool(server)
            await pool.exchange(request(b"x"), soon())
            left.set()
            await asyncio.sleep(0.05)
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"
            assert server.connections == 2

    @pytest.mark.parametrize("resets", [False, True])
    @pytest.mark.parametrize(("later", "closes"), [(WRONG, False), (b"", True), (WRONG, True)])
    async def test_that_did_so_before_the_loop_could_see_it_are_not_used_either(
        self, later: bytes, closes: bool, resets: bool
    ) -> None:
        said = threading.Event()

        def serve(listener: socket.socket) -> None:
            first, _ = listener.accept()
            first.recv(4096)
            first.sendall(reply(b"first"))
            go.wait()
            first.sendall(later)
            if resets:
                first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if closes:
                first.close()
            said.set()
            second, _ = listener.accept()
            second.recv(4096)
            second.sendall(reply(b"second"))
            second.close()
            first.close()

        go = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=serve, args=(listener,), daemon=True)
            thread.start()
            pool = Pool(Server("127.0.0.1", listener.getsockname()[1]))
            await pool.exchange(request(b"x"), soon())
            go.set()
            said.wait(60)  # the loop stands still, and with it all that it could notice
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"
            await pool.close()
            thread.join(60)

    async def test_are_not_confused_by_line_breaks_after_a_reply(self, open_pool: OpenPool) -> None:
        async with RawServer(says(reply(b"first") + b"\r\n", reply(b"second")), echoes) as server:
            pool = open_pool(server)
            assert (await pool.exchange(request(b"x"), soon())).body == b"first"
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    @pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", reply(b"second")[:-1]])
    async def test_that_close_on_a_request_lose_it_and_it_is_sent_once(
        self, answer: bytes, open_pool: OpenPool
    ) -> None:
        async with RawServer(says(reply(b"first"), answer, stays=False), echoes) as server:
            pool = open_pool(server)
            await pool.exchange(request(b"x"), soon())
            with pytest.raises(LostConnectionError):
                await pool.exchange(request(b"second"), soon())
            assert server.connections == 1

    async def test_whose_request_was_answered_before_it_was_sent_are_not_used_again(
        self, open_pool: OpenPool
    ) -> None:
        async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply(b"too large", status=b"413 Too Large"))
            await writer.drain()
            await asyncio.Event().wait()

        async with RawServer(hasty, echoes) as server:
            pool = open_pool(server)
            assert (await pool.exchange(request(b"x" * 20_000_000), soon())).status == 413
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    async def test_end_when_nobody_has_used_them_for_a_while(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "KEEPALIVE_SECONDS", 0.05)
        monkeypatch.setattr(pool_module, "LINGER_SECONDS", 0.1)
        async with RawServer(echoes) as server:
            pool = open_pool(server)
            await asyncio.gather(*(pool.exchange(request(b"x"), soon()) for _ in range(5)))
            await server.all_ended()
            assert (await pool.exchange(request(b"x"), soon())).body == b"x"
            assert server.connections == 6

    async def test_stay_open_for_late_replies_however_many_calls_follow(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To a server that has sent surplus replies; new connections wait until an old one has stayed long enough."""
        monkeypatch.setattr(pool_module, "MOST_LINGERING", 2)
        monkeypatch.setattr(pool_module, "SHORTEST_LINGER_SECONDS", 1.0)
        left, seen = asyncio.Event(), asyncio.Event()
        lying = says(reply(b"first") + WRONG)
        async with RawServer(lying, then(reply(b"second"), WRONG, left), echoes) as server:
            pool = open_pool(server)
            await pool.exchange(request(b"x"), soon())
            second = await pool.exchange(request(b"x"), soon())
            assert second.delivery is not None
            second.delivery.watch(seen.set)
            more = [asyncio.create_task(pool.exchange(request(b"x"), soon())) for _ in range(2)]
            await more[0]
            more += [asyncio.create_task(pool.exchange(request(b"x"), soon())) for _ in range(3)]
            await asyncio.sleep(0.1)
            left.set()
            await asyncio.wait_for(seen.wait(), 60)
            assert [answer.body for answer in await asyncio.gather(*more)] == [b"x"] * 5

    async def test_end_when_the_pool_is_closed_and_fail_their_calls(self, open_pool: OpenPool) -> None:
        asked = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await read_request(reader)
            asked.set()
            await reader.read()

        async with RawServer(echoes, silent) as server:
            pool = open_pool(server)
            await pool.exchange(request(b"x"), soon())
            calls = [asyncio.create_task(pool.exchange(request(b"x"), soon())) for _ in range(2)]
            await asyncio.wait_for(asked.wait(), 60)
            await pool.close()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(results[1], LostConnectionError)
            await server.all_ended()


class TestCancelling:
    """At every place where a call waits."""

    async def cancel(self, pool: Pool, until: asyncio.Event) -> None:
        call = asyncio.create_task(pool.exchange(request(b"cancelled"), soon()))
        await asyncio.wait_for(until.wait(), 60)
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    @pytest.mark.parametrize("half", [b"", b"HTTP/1.1 200 OK\r\nconte", reply(b"cancelled")[:-3]])
    async def test_while_the_reply_comes_ends_the_connection(self, half: bytes, open_pool: OpenPool) -> None:
        waiting = asyncio.Event()

        async def dawdles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(half)
            waiting.set()
            await reader.read()

        async with RawServer(dawdles, echoes) as server:
            pool = open_pool(server)
            await self.cancel(pool, waiting)
            await server.all_ended()
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    async def test_when_the_reply_has_come_ends_the_connection(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        complete = HttpConnection._complete

        def complete_and_cancel(connection: HttpConnection) -> None:
            complete(connection)
            call.cancel()

        async with RawServer(echoes) as server:
            pool = open_pool(server)
            with monkeypatch.context() as patched:
                patched.setattr(HttpConnection, "_complete", complete_and_cancel)
                call = asyncio.create_task(pool.exchange(request(b"cancelled"), soon()))
                with pytest.raises(asyncio.CancelledError):
                    await call
            await server.all_ended()
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    async def test_while_connecting_leaves_nothing_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        resolving = asyncio.Event()

        async def getaddrinfo(*_: object, **__: object) -> object:
            resolving.set()
            return await asyncio.Event().wait()

        pool = Pool(Server("localhost", 1))
        monkeypatch.setattr(
            pool, "_loop", type("Loop", (), {"getaddrinfo": getaddrinfo, "time": lambda _: 0.0})()
        )
        await self.cancel(pool, resolving)
        assert (pool._taken, pool._resolving.locked()) == (0, False)

    async def test_while_waiting_for_room_leaves_it_to_the_next(
        self, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 1)
        go, asked = asyncio.Event(), asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                body = await read_request(reader)
                asked.set()
                await go.wait()
                writer.write(reply(body))

        async with RawServer(slow) as server:
            pool = open_pool(server)
            first = asyncio.create_task(pool.exchange(request(b"first"), soon()))
            await self.cancel(pool, asked)
            third = asyncio.create_task(pool.exchange(request(b"third"), soon()))
            go.set()
            assert [answer.body for answer in await asyncio.gather(first, third)] == [b"first", b"third"]


class TestAddresses:
    async def test_are_tried_until_one_answers(self) -> None:
        async with RawServer(echoes) as server:
            addresses = await asyncio.get_running_loop().getaddrinfo("127.0.0.1", server.port, type=1)
            family, kind, protocol, name, _ = addresses[0]
            pool = Pool(Server("example.invalid", server.port))
            pool._addresses = [
                (family, kind, protocol, name, ("127.0.0.1", port)) for port in (1, server.port)
            ]
            pool._resolved_at = asyncio.get_running_loop().time()
            assert (await pool.exchange(request(b"x"), soon())).body == b"x"
            await pool.close()

    @pytest.mark.parametrize(
        ("host", "words"),
        [
            ("127.0.0.1", "nothing listens at 127.0.0.1:1"),
            ("does-not-exist.invalid", "does-not-exist.invalid can't be resolved"),
            ("a" * 64 + ".invalid", "no connection to aaa"),
        ],
    )
    async def test_of_which_none_answers_cost_nothing_and_are_named(self, host: str, words: str) -> None:
        pool = Pool(Server(host, 1))
        with pytest.raises(NotConnectedError) as raised:
            await pool.exchange(request(b"x"), soon())
        assert str(raised.value).startswith(words)
        assert pool._taken == 0
        await pool.close()

    async def test_that_never_answer_are_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_module, "CONNECT_SECONDS", 0.05)

        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await reader.read()

        async with RawServer(silent) as server:  # says nothing to a TLS handshake
            pool = Pool(Server("127.0.0.1", server.port, _trusting_nobody()))
            with pytest.raises(NotConnectedError, match=r"within 0\.05 s"):
                await pool.exchange(request(b"x"), soon())
            await server.all_ended()
            await pool.close()


def _trusting_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
