"""The commands of the chart's pods with their variables and files, as processes of this machine."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.chart.test_chart import PLAIN, SECRET, Json, environment, pods, rendered
from tests.databases import Databases
from tests.observe import eventually

HOST = "assay-persona-assay-api.evaluation.svc"
SECONDS = 120.0


class Pods:
    """Runs what is in the chart's pods.

    Args:
        specifications: The pods, by part.
        files: Where their Secret lies.
        port: The API's, instead of 8321.
    """

    def __init__(self, specifications: dict[str, Json], files: Path, port: int) -> None:
        self._specifications, self._files = specifications, files
        self.port = port

    def variables(self, part: str) -> dict[str, str]:
        """What a container sees: of this machine only where programs are."""
        given = environment(self._specifications[part])
        mapped = {
            name: value.replace("/run/secrets/assay", str(self._files)) for name, value in given.items()
        }
        return {"PATH": os.environ["PATH"], "ASSAY_HOST": "0.0.0.0"} | mapped  # the image sets ASSAY_HOST

    def command(self, part: str) -> list[str]:
        words = self._specifications[part]["containers"][0]["command"]
        return [{"python": sys.executable, "8321": str(self.port)}.get(word, word) for word in words]

    def ended(self, part: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a part, or another command in its place, to its end."""
        return subprocess.run(
            list(command) or self.command(part),
            env=self.variables(part),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    @contextmanager
    def running(self, part: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a part until it is told to stop, as by Kubernetes."""
        with subprocess.Popen(
            self.command(part), env=self.variables(part), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(SECONDS)
                finally:
                    process.kill()


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The URL of a database without tables."""
    with databases.new("chart") as url:
        yield url


@pytest.fixture
def cluster(helm: str, database: str, redis_url: str, tmp_path: Path) -> Pods:
    for name, value in (SECRET | {"DATABASE_URL": database, "REDIS_URL": redis_url}).items():
        (tmp_path / name).write_text(value)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return Pods(pods(rendered(helm, PLAIN)), tmp_path, port)


def asked(port: int, path: str, host: str = HOST, key: str = "") -> int:
    """The status of an answer of the API; 0 if there is none."""
    headers = {"Host": host} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        return httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=SECONDS).status_code
    except httpx2.TransportError:
        return 0


@pytest.mark.timeout(600)
def test_an_installation_comes_up_in_the_order_of_the_page(cluster: Pods) -> None:
    too_early = cluster.ended("worker")
    assert "run `assay migrate`" in too_early.stderr
    migrated = cluster.ended("migration")
    assert migrated.returncode == 0, migrated.stderr
    without_key = cluster.ended("api")
    assert without_key.returncode != 0
    assert "assay keys create" in without_key.stderr
    assay = str(Path(sys.executable).with_name("assay"))
    made = cluster.ended("shell", assay, "keys", "create", "--name", "me", "--scope", "admin")
    assert made.returncode == 0, made.stderr
    [key] = [word for word in made.stdout.split() if word.startswith("assay_")]
    with ExitStack() as stack:
        started = [stack.enter_context(cluster.running(part)) for part in ("api", "worker", "sweeper")]
        port = cluster.port
        assert eventually(lambda: asked(port, "/readyz") == 200, SECONDS)
        assert asked(port, "/v1/models") == 401
        assert asked(port, "/v1/models", key=key) == 200
        assert asked(port, "/metrics", host=f"127.0.0.1:{port}", key=key) == 200
        assert asked(port, "/v1/models", host="elsewhere.example.org", key=key) == 421
    api, worker, sweeper = (process.returncode for process in started)
    assert (worker, sweeper) == (0, 0)
    assert api in {0, -signal.SIGTERM}  # uvicorn ends as if by the signal, after it has stopped
