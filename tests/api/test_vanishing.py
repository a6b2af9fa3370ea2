"""Clients that vanish in the middle of what they send, or of what they are sent: nothing is left of them."""

import socket
import struct
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped] # it comes without types
import pytest

from tests.api.service import Service, compact, job_body
from tests.observe import PATIENCE, eventually

CSV = b"description\r\n" + b"".join(b"critic number %d\r\n" % n for n in range(2000))
UPLOADS = {
    "a job": ("/v1/jobs", "application/json", compact(job_body(name="half a job"))),
    "personas": ("/v1/persona-sets", "text/csv", CSV),
    "annotations": ("/v1/annotations", "text/csv", b"annotator,response,score\r\nanna,resp_1,3\r\n"),
    "a form": ("/new", "application/x-www-form-urlencoded", b"name=half&iterations=1"),
}
STAGES = ("half a head", "a head", "half a body", "all but a byte")
TEXTS = [{"persona": "E-low", "task": "essay", "text": "I stay in."}] * 500


@pytest.fixture
def fresh(api: Service) -> Service:
    api.empty("persona_sets")
    return api


def connected(api: Service) -> socket.socket:
    parts = urlsplit(api.url)
    connection = socket.socket()
    connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
    )  # what is not read stays with the service
    connection.settimeout(PATIENCE)
    connection.connect((str(parts.hostname), parts.port or 0))
    return connection


def vanish(connection: socket.socket) -> None:
    """Ends a connection as a machine does that is switched off and on again: by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def request(path: str, media_type: str, body: bytes, *, chunked: bool, key: str = "vanished") -> bytes:
    length = "transfer-encoding: chunked" if chunked else f"content-length: {len(body)}"
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {media_type}\r\nidempotency-key: {key}\r\n"
    )
    if chunked:
        body = b"".join(b"1\r\n%c\r\n" % byte for byte in body[:1]) + (
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) - 1, body[1:])
        )
    return f"{head}{length}\r\n\r\n".encode() + body


def until(stage: str, whole: bytes) -> bytes:
    """What is sent of a request before its sender vanishes."""
    head = whole.index(b"\r\n\r\n") + 4
    ends = (head // 2, head, head + (len(whole) - head) // 2, len(whole) - 1)
    return whole[: ends[STAGES.index(stage)]]


class Watch:
    """What the service has of its clients: connections to them and to the database, and files."""

    def __init__(self, api: Service) -> None:
        assert api.process is not None
        self._api = api
        self._process = psutil.Process(api.process.pid)
        self._files = self.files()

    def files(self) -> set[str]:
        return {file.path for file in self._process.open_files()}

    def clients(self) -> int:
        port = urlsplit(self._api.url).port
        return sum(
            each.laddr.port == port and bool(each.raddr) for each in self._process.net_connections("tcp")
        )

    def at_work(self) -> int:
        """Connections to the database that are not in the pool, apart from those that ask whether it answers."""
        return self._api.count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'assay api' AND state <> 'idle'"
        )

    def nothing_is_left(self) -> bool:
        def holds() -> bool:
            # One connection to a client may be that which `api` keeps.
            return self.clients() <= 1 and self.at_work() == 0 and self.files() == self._files

        return eventually(holds, PATIENCE)


class TestUploads:
    @pytest.mark.parametrize("chunked", [False, True])
    @pytest.mark.parametrize("what", UPLOADS)
    def test_that_break_off_leave_nothing(self, fresh: Service, what: str, chunked: bool) -> None:
        watch = Watch(fresh)
        whole = request(*UPLOADS[what], chunked=chunked)
        for stage in STAGES:
            for end in (vanish, socket.socket.close):
                connection = connected(fresh)
                connection.sendall(until(stage, whole))
                end(connection)
        assert watch.nothing_is_left()
        assert set(fresh.rows().values()) == {0}
        assert fresh.count("SELECT count(*) FROM persona_sets") == 0

    @pytest.mark.parametrize("chunked", [False, True])
    def test_whose_sender_awaits_no_answer_are_whole_or_nothing(self, fresh: Service, chunked: bool) -> None:
        watch = Watch(fresh)
        for n in range(10):
            connection = connected(fresh)
            connection.sendall(request(*UPLOADS["a job"], chunked=chunked, key=f"key-{n}"))
            vanish(connection)
        assert watch.nothing_is_left()
        rows = fresh.rows()
        assert rows["jobs"] == rows["cells"] == rows["shards"] == rows["idempotency_keys"] <= 10


class TestDownloads:
    @pytest.mark.parametrize(
        "path", ["report?format=jsonl", "report?format=csv", "report?format=parquet", "events"]
    )
    def test_that_break_off_leave_nothing(self, fresh: Service, path: str) -> None:
        job = fresh.submit(job_body(models=None, instructions=None, responses=TEXTS))
        fresh.execute(
            "INSERT INTO verdicts (cell_id, run, item, unit, trait, judge, tenant, status, score, raw)"
            " SELECT cell_id, run, item, 0, 0, 0, tenant, 'scored', 3, string_agg(md5(n::text), '')"
            " FROM responses, generate_series(1, 1000) n GROUP BY 1, 2, 3, 7"
        )
        if path != "events":
            fresh.get(f"/v1/jobs/{job['id']}/{path}")  # what it imports is there
        watch = Watch(fresh)
        for end in (vanish, socket.socket.close) * 3:
            connection = connected(fresh)
            connection.sendall(
                f"GET /v1/jobs/{job['id']}/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
            )
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            end(connection)
        assert watch.nothing_is_left()
