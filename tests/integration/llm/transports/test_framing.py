"""What a server can say instead of a plain reply, over raw sockets."""

import asyncio
import gzip
import zlib

import pytest

from app.llm.replies.transport_reply import LostConnectionError, Reply, ReplyTooLongError
from app.llm.transports.content import decoded
from app.llm.transports.http1 import MAX_BODY_BYTES, MAX_HEAD_BYTES
from tests.integration.llm.transports.conftest import OpenPool, request, soon
from tests.integration.llm.transports.raw_server import RawServer, echoes, read_request, reply, says

pytestmark = pytest.mark.usefixtures("rests_no_more")
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n"
MEGABYTE = 2**20

REFUSED = {
    "both framings": CHUNKED + b"content-length: 2\r\n\r\n0\r\n\r\n",
    "both framings, the other way round": OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "a list of lengths": OK + b"content-length: 2, 3\r\n\r\n{}",
    "two equal lengths and a coding": CHUNKED + b"content-length: 2\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
    "a signed length": OK + b"content-length: +2\r\n\r\n{}",
    "a hexadecimal length": OK + b"content-length: 0x2\r\n\r\n{}",
    "an endless length": OK + b"content-length: 99999999999999999999999999\r\n\r\n{}",
    "chunked twice": CHUNKED + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "another transfer coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a transfer coding without an end": OK + b"transfer-encoding: gzip\r\n\r\n{}",
    "a hidden transfer coding": OK + b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": OK + b"content-length : 2\r\n\r\n{}",
    "a folded header": OK + b"x: y\r\n z\r\ncontent-length: 2\r\n\r\n{}",
    "a bare carriage return": OK + b"x: y\rz: w\r\ncontent-length: 2\r\n\r\n{}",
    "a null in a header": OK + b"x: \0\r\ncontent-length: 2\r\n\r\n{}",
    "a chunk of no length": CHUNKED + b"\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk of negative length": CHUNKED + b"\r\n-2\r\n{}\r\n0\r\n\r\n",
    "a chunk of endless length": CHUNKED + b"\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than said": CHUNKED + b"\r\n2\r\n{}{}\r\n0\r\n\r\n",
    "a length among the trailers": CHUNKED + b"\r\n2\r\n{}\r\n0\r\ncontent-length: 9\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "a version before all": b"HTTP/0.9 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "a request": b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
    "a change of protocol": b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n{}",
    "a status that does not exist": b"HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}",
    "a status below all": b"HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\n{}",
    "headers without an end": OK + b"x: " + b"y" * (MAX_HEAD_BYTES + 1),
    "interim replies without an end": b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD_BYTES // 20),
}  # fmt: skip

ODD = {
    "one length twice": OK + b"content-length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "one length in a list": OK + b"content-length: 2, 2\r\n\r\n{}",
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}",
    "the coding identity": OK + b"Transfer-Encoding: Identity\r\nContent-Length: 2\r\n\r\n{}",
}

READ = {
    "chunks": (CHUNKED + b"\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", b"abcde"),
    "chunks with extensions and trailers": (
        CHUNKED + b"\r\n5;a=b\r\nabcde\r\n0\r\nx: y\r\n\r\n",
        b"abcde",
    ),
    "an interim reply before it": (b"HTTP/1.1 100 Continue\r\n\r\n" + reply(b"abcde"), b"abcde"),
    "several interim replies before it": (
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + reply(b"abcde"),
        b"abcde",
    ),
    "nothing": (reply(b""), b""),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
}


class TestReplies:
    @pytest.mark.parametrize("name", REFUSED)
    async def test_that_are_no_plain_http_are_refused_and_end_the_connection(
        self, name: str, open_pool: OpenPool
    ) -> None:
        async with RawServer(says(REFUSED[name]), echoes) as server:
            pool = open_pool(server)
            with pytest.raises(LostConnectionError):
                await pool.exchange(request(b"first"), soon())
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"
            assert server.connections == 2

    @pytest.mark.parametrize("name", READ)
    @pytest.mark.parametrize("piece", [1, 7, 10_000])
    async def test_are_read_however_they_are_cut(self, name: str, piece: int, open_pool: OpenPool) -> None:
        wire, body = READ[name]
        connection = CutConnection(wire, piece)
        async with RawServer(connection.serve) as server:
            pool = open_pool(server)
            for _ in range(2):
                got = await pool.exchange(request(b"x"), soon())
                assert (got.body, "x" in got.headers, "link" in got.headers) == (body, False, False)
            assert server.connections == 1

    @pytest.mark.parametrize("name", ODD)
    @pytest.mark.parametrize("piece", [1, 7, 10_000])
    async def test_with_an_odd_but_clear_head_are_read_and_end_the_connection(
        self, name: str, piece: int, open_pool: OpenPool
    ) -> None:
        async with RawServer(CutConnection(ODD[name], piece).serve, echoes) as server:
            pool = open_pool(server)
            assert (await pool.exchange(request(b"first"), soon())).body == b"{}"
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"
            assert server.connections == 2

    @pytest.mark.parametrize(
        "head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", OK + b"connection: close\r\n"]
    )
    async def test_without_a_length_end_with_the_connection(self, head: bytes, open_pool: OpenPool) -> None:
        async with RawServer(says(head + b"\r\nabcde", stays=False)) as server:
            assert (await open_pool(server).exchange(request(b"x"), soon())).body == b"abcde"

    @pytest.mark.parametrize("wire", [reply(b"abcde")[:-1], CHUNKED + b"\r\n5\r\nabcde\r\n", OK + b"x", OK])
    async def test_that_break_off_are_no_replies(self, wire: bytes, open_pool: OpenPool) -> None:
        async with RawServer(says(wire, stays=False)) as server:
            with pytest.raises(LostConnectionError):
                await open_pool(server).exchange(request(b"x"), soon())

    @pytest.mark.parametrize(
        "wire",
        [
            OK + b"content-length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
            CHUNKED + b"\r\n" + (b"%x\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n") * 11,
            OK + b"\r\n" + b"x" * (MAX_BODY_BYTES + 1),
        ],
        ids=["announced", "in chunks", "until it closes"],
    )
    async def test_are_given_up_once_they_are_longer_than_answers_are(
        self, wire: bytes, open_pool: OpenPool
    ) -> None:
        async with RawServer(says(wire), echoes) as server:
            pool = open_pool(server)
            with pytest.raises(ReplyTooLongError):
                await pool.exchange(request(b"first"), soon())
            await server.all_ended()
            assert (await pool.exchange(request(b"second"), soon())).body == b"second"

    async def test_keep_their_status_and_headers(self, open_pool: OpenPool) -> None:
        wire = reply(b"{}", b"X-Request-Id: req_1", b"Set-Cookie: a", b"set-cookie: b", status=b"529 Odd")
        async with RawServer(says(wire)) as server:
            got = await open_pool(server).exchange(request(b"x"), soon())
        assert got[:3] == (529, {"content-length": "2", "x-request-id": "req_1", "set-cookie": "a, b"}, b"{}")


class CutConnection:
    """Sends the same reply in small pieces, each by itself."""

    def __init__(self, wire: bytes, piece: int) -> None:
        self._pieces = [wire[start : start + piece] for start in range(0, len(wire), piece)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            for piece in self._pieces:
                writer.write(piece)
                await asyncio.sleep(0)


def packed(body: bytes, coding: str) -> Reply:
    return Reply(200, {"content-encoding": coding}, body)


BOMB = b"0" * (MAX_BODY_BYTES + 1)


class TestContent:
    @pytest.mark.parametrize(
        ("coding", "body"),
        [
            ("gzip", gzip.compress(b"abcde")),
            ("x-gzip", gzip.compress(b"abcde")),
            ("gzip, identity", gzip.compress(b"abcde")),
            (" GZIP ", gzip.compress(b"abcde")),
            ("deflate", zlib.compress(b"abcde")),
            ("gzip, deflate", zlib.compress(gzip.compress(b"abcde"))),
            ("identity", b"abcde"),
            ("utf-8", b"abcde"),
        ],
        ids=["gzip", "older name", "with identity", "in capitals", "deflate", "both", "none", "no coding"],
    )
    async def test_is_unpacked(self, coding: str, body: bytes) -> None:
        assert (await decoded(packed(body, coding))).body == b"abcde"

    async def test_is_unpacked_without_a_header_if_its_first_bytes_are_those_of_gzip(self) -> None:
        assert (await decoded(Reply(200, {}, gzip.compress(b"abcde")))).body == b"abcde"

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    async def test_that_is_not_what_it_says_is_refused(self, coding: str) -> None:
        with pytest.raises(LostConnectionError):
            await decoded(packed(b"abcde", coding))

    async def test_that_breaks_off_is_refused(self) -> None:
        with pytest.raises(LostConnectionError):
            await decoded(packed(gzip.compress(b"abcde")[:-1], "gzip"))

    async def test_that_goes_on_after_its_end_is_refused(self) -> None:
        with pytest.raises(LostConnectionError):
            await decoded(packed(gzip.compress(b"abcde") + b"more", "gzip"))

    @pytest.mark.parametrize(
        ("coding", "body"),
        [
            ("gzip", gzip.compress(BOMB)),
            ("deflate", zlib.compress(BOMB)),
            ("gzip, gzip", gzip.compress(gzip.compress(BOMB))),
        ],
        ids=["gzip", "deflate", "twice"],
    )
    async def test_is_unpacked_no_further_than_answers_are_long(self, coding: str, body: bytes) -> None:
        with pytest.raises(ReplyTooLongError):
            await decoded(packed(body, coding))

    async def test_packed_more_often_than_anybody_does_is_refused(self) -> None:
        with pytest.raises(LostConnectionError):
            await decoded(packed(b"abcde", ", ".join(["gzip"] * 9)))
