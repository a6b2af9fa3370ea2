"""The whole service as one program with databases of its own, so that every part of it, and all of it, can be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

import httpx2
import psycopg

from embedded.process import RunAs, launch_command
from embedded.supervisor import free_port
from tests.databases import libpq_url
from tests.e2e.stack import Json, Stack
from tests.faults.program import CRASH_FILE, PROJECT
from tests.observe import descendants, eventually

START_SECONDS = 240.0
AWAY_SECONDS = 90.0
PARTS = {
    "api": "app.main:create_app",
    "sweeper": "workers.sweeper",
    "worker1": "worker1@",
    "worker2": "worker2@",
    "postgres": "/bin/postgres",
    "valkey": "valkey-server",
}


class Program:
    """`tests.faults.program` in a process, its parts, and its death.

    Args:
        data_dir: where it keeps everything.
        environment: variables of all its processes.
    """

    def __init__(self, data_dir: Path, environment: dict[str, str]) -> None:
        self.data_dir = data_dir
        self.port = free_port("127.0.0.1", 0)
        self._environment = os.environ | environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def crash_file(self) -> Path:
        return self.data_dir / CRASH_FILE

    def start(self) -> None:
        """Starts it and waits until its API is ready."""
        with (self.data_dir / "program.log").open("ab") as log:
            self._process = subprocess.Popen(
                mortal("tests.faults.program", str(self.data_dir), str(self.port)),
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        assert eventually(lambda: self._ready() or self._died(), START_SECONDS), "the program did not start"
        assert not self._died(), (self.data_dir / "program.log").read_text()

    def kill(self) -> None:
        """SIGKILL to the supervisor; the kernel does the rest."""
        parts = list(self.pids().values())
        self._end(signal.SIGKILL)
        assert eventually(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in parts), 60)

    def stop(self) -> None:
        """Stops it in order."""
        if self._process is not None:
            self._end(signal.SIGTERM)

    def pids(self) -> dict[str, int]:
        """The pids of the parts that are alive, by name."""
        if self._process is None:
            return {}
        found: dict[str, int] = {}
        for pid in descendants(self._process.pid):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if stat[0] != "Z" and int(stat[1]) == self._process.pid:
                found |= {name: pid for name, mark in PARTS.items() if mark in words}
        return found

    def database_url(self) -> str:
        sockets = (self.data_dir / "postgres" / "sockets").readlink()
        return f"postgresql+psycopg://assay@/assay?host={sockets}&port=5432"

    def redis_url(self) -> str:
        return f"unix://{(self.data_dir / 'valkey' / 'sockets').readlink()}/valkey.sock?db=0"

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(120)
        self._process = None

    def _died(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _ready(self) -> bool:
        try:
            ready = httpx2.get(f"{self.api}/readyz", timeout=5)
            return ready.status_code == 200 and ready.json()["parts"].get("workers") == "ok"
        except httpx2.TransportError:
            return False


class Service(Stack):
    """A running program, and the simulator that outlives it."""

    def __init__(self, program: Program, api: httpx2.Client, simulator: httpx2.Client) -> None:
        super().__init__(program, api, simulator)
        self.program = program

    def _get(self, path: str, **query: str) -> Json:
        """As a client does that knows that a service may be away for a moment."""
        deadline = time.monotonic() + AWAY_SECONDS
        while True:
            try:
                answer = self.api.get(path, params=query)
                if answer.status_code == 200:
                    found: Json = answer.json()
                    return found
                assert answer.status_code == 503, answer.text
            except httpx2.TransportError:
                assert time.monotonic() < deadline, f"no answer to {path} in {AWAY_SECONDS:g} s"
            assert time.monotonic() < deadline, f"only 503 to {path} in {AWAY_SECONDS:g} s"
            time.sleep(0.1)

    def recorded(self, job_id: str) -> set[str]:
        """The calls of a job whose outcome is in the database."""
        with self.database() as connection:
            rows = connection.execute(RECORDED, {"job": job_id})
            return {path for (path,) in rows}

    def waiting_shards(self, job_id: str) -> set[tuple[int, datetime]]:
        """The shards of a job that wait for their message to be taken, and when that was sent."""
        with self.database() as connection:
            return set(connection.execute(WAITING, {"job": job_id}))

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(libpq_url(self.program.database_url()), autocommit=True) as connection:
            yield connection

    def arm(self, point: str, moment: str, n: int) -> None:
        """Has the worker that passes a point for the n-th time kill itself."""
        draft = self.program.crash_file.with_suffix(".draft")
        draft.write_text(f"{point} {moment} {n}", encoding="ascii")
        draft.replace(self.program.crash_file)

    def crashed(self, seconds: float) -> bool:
        """Whether a worker dies within so many seconds where it was told to."""
        return eventually(lambda: not self.program.crash_file.exists(), seconds)

    def settled(self, seconds: float = START_SECONDS) -> Self:
        """Waits until every part is up."""
        assert eventually(lambda: self.program.pids().keys() == PARTS.keys(), seconds), self.program.pids()
        assert eventually(self.program._ready, seconds)
        return self


RECORDED = (
    "SELECT concat_ws('/', 'generation', ordinal, run, item) FROM responses JOIN cells ON cells.id = cell_id"
    " WHERE job_id = %(job)s UNION ALL"
    " SELECT concat_ws('/', 'judging', ordinal, run, item, unit, trait, judge)"
    " FROM verdicts JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
)


WAITING = (
    "SELECT id, announced_at FROM shards WHERE job_id = %(job)s AND NOT done AND announced_at IS NOT NULL"
    " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())"
)


def mortal(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this tree and dies with the tests, however they die."""
    return launch_command(
        [sys.executable, "-m", module, *arguments], run_as=RunAs.ourselves(), directory=PROJECT
    )


@contextmanager
def running_service(directory: Path, environment: dict[str, str]) -> Iterator[Service]:
    """Runs a service and a simulator until the block ends."""
    port_file, data_dir = directory / "port", directory / "data"
    data_dir.mkdir(mode=0o711, exist_ok=True)
    command = mortal("simulator", "--port-file", str(port_file), "--ledger", str(directory / "ledger.jsonl"))
    with (directory / "simulator.log").open("wb") as log:
        simulator = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        assert eventually(port_file.exists, START_SECONDS)
        url = f"http://127.0.0.1:{port_file.read_text().strip()}"
        program = Program(data_dir, environment | {"ASSAY_SIMULATOR_URL": url})
        try:
            program.start()
            with (
                httpx2.Client(base_url=program.api, timeout=60) as api,
                httpx2.Client(base_url=url, timeout=60) as simulated,
            ):
                yield Service(program, api, simulated)
        finally:
            program.stop()
    finally:
        simulator.terminate()
        simulator.wait(30)
