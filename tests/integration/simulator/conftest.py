"""A simulator in a process of its own, as the product's users start it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest


class RunningSimulator:
    """A running simulator process."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.ledger_file = directory / "ledger.jsonl"
        port_file = directory / "port"
        command = [sys.executable, "-m", "simulator", "--port-file", str(port_file), *options]
        self.process = subprocess.Popen(
            [*command, "--ledger", str(self.ledger_file)], stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while not port_file.exists():
            assert self.process.poll() is None, "the simulator did not start"
            assert time.monotonic() < deadline, "the simulator does not listen"
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers in lower case and body of one request; a body that is not bytes is sent as JSON."""
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(method, path, sent, headers or {})
            reply = connection.getresponse()
            return (
                reply.status,
                {name.lower(): value for name, value in reply.getheaders()},
                reply.read().decode(),
            )

    def configure(self, **settings: float) -> None:
        status, _, text = self.request("POST", "/_sim/config", settings)
        assert status == 200, text

    def counts(self) -> dict[tuple[str, str | None, str, int], tuple[int, int]]:
        """(received, answered) by (endpoint, model, kind, status)."""
        rows = json.loads(self.request("GET", "/_sim/stats")[2])["counts"]
        return {
            (row["endpoint"], row["model"], row["kind"], row["status"]): (row["received"], row["answered"])
            for row in rows
        }

    def ledger(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.request("GET", "/_sim/ledger")[2].splitlines()]

    def stop(self) -> int:
        """Ends the process as a supervisor does; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningSimulator]]:
    """Starts simulators with command-line options and stops them after the test."""
    started: list[RunningSimulator] = []

    def start_one(*options: str) -> RunningSimulator:
        directory = tmp_path / str(len(started))
        directory.mkdir()
        started.append(RunningSimulator(directory, *options))
        return started[-1]

    yield start_one
    for one in started:
        one.stop()


@pytest.fixture
def simulator(start: Callable[..., RunningSimulator]) -> RunningSimulator:
    """A simulator with default settings and a ledger."""
    return start()
