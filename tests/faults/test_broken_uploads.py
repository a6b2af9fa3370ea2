"""An upload whose API is killed, or whose connection is cut, at many places: nothing twice, nothing lost, the same texts."""

import hashlib
import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

from embedded.supervisor import free_port
from persona_assay import AssayClient
from tests.api.service import Service, serving
from tests.databases import libpq_url
from tests.observe import eventually

BYTES_A_PLACE = 2_000_000  # of a part's 4 MiB one is stored at a time
PLACES = [5, pytest.param(20, marks=pytest.mark.long)]

pytestmark = pytest.mark.timeout(1800)  # for a busy machine


def texts(size: int) -> Iterator[str]:
    """Texts of so many bytes together, each another."""
    written = number = 0
    while written < size:
        text = (
            f"Text {number}: ❄ is one character of three bytes. {'It snows and snows on ' * (number % 200)}"
        )
        written += len(text)
        number += 1
        yield text


def digest(found: Iterator[str]) -> str:
    made = hashlib.sha256()
    for text in found:
        made.update(text.encode() + b"\0")
    return made.hexdigest()


class Cable:
    """A TCP connection through which a client reaches a server, and which can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._ends: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *, reset: bool) -> None:
        """Ends each connection, as a program that ends does or with a reset."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._socket.close()
        self.cut(reset=True)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(4096):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)


class Upload:
    """A file that is sent by the client, and what of it is in the database."""

    def __init__(self, database_url: str, directory: Path, places: int) -> None:
        self.places = places
        self.texts = list(texts(places * BYTES_A_PLACE))
        self.file, self.log = directory / "texts.jsonl", directory / "api.log"
        with self.file.open("w", encoding="utf-8") as file:
            for text in self.texts:
                record = {"persona": "E-low", "task": "essay", "text": text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._connection = psycopg.connect(libpq_url(database_url), autocommit=True)

    def send(self, url: str, disturb: Callable[[], None]) -> None:
        """Sends the file and strikes at each place, some while after so many bytes are stored; it must not break off."""
        size, chance = self.file.stat().st_size, random.Random(7)
        with ThreadPoolExecutor(1) as sender, AssayClient(url, retry_seconds=120) as client:
            sent = sender.submit(client.upload, self.file)
            for place in range(self.places):
                least = size * place // (self.places + 1)
                assert eventually(partial(self.is_beyond, least), 120), self.log.read_text()[-3000:]
                threading.Event().wait(chance.uniform(0, 0.05))
                assert not sent.done(), f"it ended before place {place}"
                disturb()
                self.check()
            upload = sent.result(300)
        assert (upload["status"], upload["received"]) == ("ready", size)
        assert upload["records"] == len(self.texts)

    def is_beyond(self, place: int) -> bool:
        """Whether more bytes than so many are stored."""
        return bool(self._connection.execute("SELECT FROM uploads WHERE received > %s", (place,)).fetchall())

    def check(self) -> None:
        """At any time there are as many records as were counted, each of its own line."""
        with self._connection.transaction():
            rows = self._connection.execute(
                "SELECT records, (SELECT count(*) FROM upload_records),"
                " (SELECT count(DISTINCT line) FROM upload_records) FROM uploads"
            ).fetchall()
        assert [(count, count) for count, _, _ in rows] == [(every, lines) for _, every, lines in rows]

    def check_texts(self) -> None:
        """The stored texts are those of the file, in its order."""
        stored = self._connection.execute("SELECT text FROM upload_records ORDER BY ordinal")
        assert digest(text for (text,) in stored) == digest(iter(self.texts))
        assert self._connection.execute("SELECT count(*) FROM uploads").fetchone() == (1,)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def upload_of(database_url: str, directory: Path, places: int) -> Iterator[Upload]:
    upload = Upload(database_url, directory, places)
    try:
        yield upload
    finally:
        upload.close()


@pytest.mark.parametrize("places", PLACES)
def test_an_api_that_is_killed_loses_and_repeats_nothing(
    places: int, scratch: Path, database_url: str, redis_url: str
) -> None:
    port = free_port("127.0.0.1", 0)
    with upload_of(database_url, scratch, places) as upload, ExitStack() as stack:

        def start() -> Service:
            return stack.enter_context(serving(scratch, database_url, redis_url, port=port))

        def kill() -> None:
            running = services[-1].process
            assert running is not None
            running.kill()
            running.wait(30)
            services.append(start())

        services = [start()]
        upload.send(services[0].url, kill)
        assert len(services) == places + 1
        upload.check_texts()


@pytest.mark.parametrize("places", PLACES)
def test_a_connection_that_is_cut_loses_and_repeats_nothing(
    places: int, scratch: Path, database_url: str, redis_url: str
) -> None:
    with (
        upload_of(database_url, scratch, places) as upload,
        serving(scratch, database_url, redis_url) as service,
    ):
        cable = Cable(int(service.url.rpartition(":")[2]))
        resets = iter([True, False] * places)
        try:
            upload.send(cable.url, lambda: cable.cut(reset=next(resets)))
        finally:
            cable.close()
        upload.check_texts()
