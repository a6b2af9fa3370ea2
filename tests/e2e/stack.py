"""A whole running service, as processes, and a client that uses it only through its doors."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest
import redis
import yaml

from embedded.services import StackConfig
from embedded.supervisor import Supervisor
from embedded.valkey import EmbeddedValkey
from tests.databases import Databases
from tests.observe import PATIENCE, descendants, eventually

Json = dict[str, Any]

TERMINAL = {"completed", "failed", "cancelled"}

USUAL_PROFILES = ("--openai-profile", "openai-mini-tier-5", "--anthropic-profile", "anthropic-contract")
"""What the simulator answers like: limits of requests and of tokens in the headers of every reply, as real ones have them."""


class Processes(Protocol):
    """Who knows the processes of a service."""

    def pids(self) -> dict[str, int]:
        """The pids of the parts that are alive, by name."""
        ...


class Stack:
    """The service, and the simulator behind it."""

    def __init__(self, supervisor: Processes, api: httpx2.Client, simulator: httpx2.Client) -> None:
        self._supervisor = supervisor
        self.api = api
        self._simulator = simulator

    # -- the API ---------------------------------------------------------------------------------------------------

    def submit(self, job: Json) -> str:
        """The id of a new job."""
        answer = self.api.post("/v1/jobs", json=job)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def job(self, job_id: str) -> Json:
        return self._get(f"/v1/jobs/{job_id}")

    def act(self, job_id: str, verb: str) -> Json:
        """The job as the answer to `cancel`, `pause` or `resume` shows it."""
        answer = self.api.post(f"/v1/jobs/{job_id}/{verb}")
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def results(self, job_id: str) -> Json:
        return self._get(f"/v1/jobs/{job_id}/results")

    def responses(self, job_id: str, arm: str = "persona") -> Iterator[Json]:
        """All responses of an arm, page by page."""
        after: dict[str, str] = {}
        while True:
            page = self._get(f"/v1/jobs/{job_id}/responses", limit="200", arm=arm, **after)
            yield from page["data"]
            if not page["has_more"]:
                return
            after = {"after": page["next_cursor"]}

    def ended(self, job_id: str, seconds: float = PATIENCE) -> Json:
        """A job, once it is over."""
        return self.until(job_id, lambda job: job["status"] in TERMINAL, seconds)

    def until(self, job_id: str, holds: Callable[[Json], bool], seconds: float = PATIENCE) -> Json:
        """A job, once something holds for it."""
        deadline = time.monotonic() + seconds
        while not holds(job := self.job(job_id)):
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {json.dumps(job)}"
            time.sleep(0.1)
        return job

    def _get(self, path: str, **query: str) -> Json:
        answer = self.api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    # -- the simulator ---------------------------------------------------------------------------------------------

    def simulate(self, **config: float) -> None:
        """Changes the simulator's settings."""
        answer = self._simulator.post("/_sim/config", json=config)
        assert answer.status_code == 200, answer.text

    @contextmanager
    def simulator_restored(self) -> Iterator[None]:
        """After the block the simulator's settings are those from before it."""
        answer = self._simulator.get("/_sim/config")
        assert answer.status_code == 200, answer.text
        try:
            yield
        finally:
            self.simulate(**answer.json())

    def received(self) -> int:
        """Requests that have reached the simulator so far."""
        return int(self._simulator.get("/_sim/stats").json()["received"])

    def ledger(self, job_id: str) -> list[Json]:
        """The simulator's own record of a job's requests, in the order in which they were settled."""
        lines = self._simulator.get("/_sim/ledger").text.splitlines()
        return [json.loads(line) for line in lines if f'"request_id":"{job_id}/' in line]

    def uploads(self) -> list[str]:
        """The names of the files that the simulator, as a provider, has been given and still has."""
        answer = self._simulator.get("/v1/files", headers={"authorization": "Bearer any"})
        return [file["filename"] for file in answer.json()["data"]]

    def after_calls(self, calls: int) -> None:
        """Waits until the simulator has received so many requests from now on."""
        target = self.received() + calls
        assert eventually(lambda: self.received() >= target, PATIENCE), f"fewer than {calls} calls came"

    # -- the processes ---------------------------------------------------------------------------------------------

    def pid(self, part: str) -> int:
        return self._supervisor.pids()[part]

    def kill(self, part: str) -> None:
        """SIGKILL; the supervisor starts the part again."""
        self.signal(part, signal.SIGKILL)

    def signal(self, part: str, number: signal.Signals) -> None:
        os.kill(self.pid(part), number)

    @contextmanager
    def frozen(self, part: str) -> Iterator[None]:
        """A part stands still inside the block."""
        pids = self._family(self.pid(part))
        try:
            signal_all(pids, signal.SIGSTOP)
            yield
        finally:
            signal_all(pids, signal.SIGCONT)

    @staticmethod
    def _family(pid: int) -> list[int]:
        return [pid, *descendants(pid)]

    def restarted(self, part: str, former: int) -> None:
        """Waits until the supervisor has started a part that had the pid `former`."""
        assert eventually(lambda: self._supervisor.pids().get(part, former) != former, 60)


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Signals all that still live: a server's process for a connection may just have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def running_stack(
    directory: Path,
    *,
    database_url: str,
    redis_url: str,
    slots: int = 24,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """Runs a stack on databases that are already there; the database has the current schema.

    Args:
        directory: its data directory; the simulator's ledger lies there too.
        database_url: an empty database with the schema.
        redis_url: an empty server; it is emptied again.
        slots: shards that a worker runs at a time.
        workers: how many worker processes there are.
        environment: variables of all its processes.
    """
    with supervised_stack(directory, database_url, redis_url, slots, workers, environment) as stack:
        yield stack
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()


@contextmanager
def supervised_stack(
    directory: Path,
    database_url: str,
    redis_url: str,
    slots: int = 24,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """The same on a Redis that is the test's own, and is left as it is."""
    config = StackConfig(
        host="127.0.0.1",
        port=0,
        data_dir=directory,
        workers=workers,
        slots=slots,
        database_url=database_url,
        redis_url=redis_url,
        simulator_args=("--ledger", str(directory / "ledger.jsonl"), *USUAL_PROFILES),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ASSAY_TENANT_CHANGES_PER_SECOND": "1000", **(environment or {})}.items():
            patch.setenv(name, value)
        supervisor = Supervisor(config, migration=lambda _: (sys.executable, "-c", ""))
        with (
            supervisor,
            httpx2.Client(base_url=supervisor.urls.api, timeout=PATIENCE) as api,
            httpx2.Client(
                base_url=supervisor.urls.environment()["ASSAY_SIMULATOR_URL"], timeout=PATIENCE
            ) as simulator,
        ):
            yield Stack(supervisor, api, simulator)


@contextmanager
def connected_stack(
    connections: Mapping[str, object],
    directory: Path,
    databases: Databases,
    template: str,
    workers: int = 1,
    /,
    **keys: str,
) -> Iterator[Stack]:
    """Runs a stack whose operator's file has these connections, on databases of its own.

    Args:
        connections: as in the file.
        directory: where the file lies, and all that the stack writes.
        databases: makes its database.
        template: of that database, with the current schema.
        workers: how many worker processes there are.
        keys: variables that the connections name.
    """
    config = directory / "assay.yaml"
    config.write_text(yaml.safe_dump({"connections": dict(connections)}))
    with (
        databases.new("connected", template=template) as url,
        EmbeddedValkey(directory / "valkey") as queue,
        running_stack(
            directory / "stack",
            database_url=url,
            redis_url=queue.url(),
            workers=workers,
            environment={"ASSAY_CONFIG": str(config), **keys},
        ) as stack,
    ):
        yield stack


def judged_path(request_id: str) -> str:
    """What a call was for, without the job and the attempt, which are the first and last part of its id."""
    return request_id.partition("/")[2].rpartition("/")[0]
